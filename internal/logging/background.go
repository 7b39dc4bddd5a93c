// Package logging keeps a user's logger away from the goroutines on which leases depend.
package logging

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// maxLines is how many lines wait for a user's logger at most.
const maxLines = 1000

// A handler is the handler of a user's logger. It must not hold up the goroutine that logs, and its
// panic must not end that goroutine. So another one calls it. The first panic goes to standard
// error, as the logger cannot be told.
type handler struct {
	slog.Handler
	lines *lineQueue
}

// Background returns a logger that neither blocks nor panics, whatever the handler of logger does.
// While 1,000 lines wait for that, later ones are dropped and counted.
func Background(logger *slog.Logger) *slog.Logger {
	return slog.New(handler{logger.Handler(), &lineQueue{handler: logger.Handler()}})
}

// Flush waits until all lines of a Background logger are written, but not past a moment.
func Flush(logger *slog.Logger, until time.Time) {
	background, ok := logger.Handler().(handler)
	if !ok {
		return
	}
	background.lines.mu.Lock()
	written := background.lines.written
	background.lines.mu.Unlock()
	if written == nil {
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	defer h.lines.catchPanic()
	return h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(_ context.Context, record slog.Record) error {
	h.lines.push(line{h.Handler, record.Clone()})
	return nil
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	defer h.lines.catchPanic()
	return handler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	defer h.lines.catchPanic()
	return handler{h.Handler.WithGroup(name), h.lines}
}

// A line waits for its handler.
type line struct {
	handler slog.Handler
	record  slog.Record
}

// A lineQueue has the lines that wait for a user's logger. One goroutine writes them, and lives
// while there are any.
type lineQueue struct {
	handler  slog.Handler
	panicked sync.Once

	mu      sync.Mutex
	queue   []line
	dropped int           // lines for which there was no room
	written chan struct{} // closed when all lines are written; nil: there are none
}

// push makes a line wait. If too many wait, it drops the line.
func (l *lineQueue) push(next line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == maxLines {
		l.dropped++
		return
	}
	l.queue = append(l.queue, next)
	if l.written == nil {
		l.written = make(chan struct{})
		go l.writeAll()
	}
}

// writeAll writes until no line waits.
func (l *lineQueue) writeAll() {
	for next, ok := l.pop(); ok; next, ok = l.pop() {
		l.write(next)
	}
}

// pop takes the first line out of the queue. The last one says how many were dropped. It returns
// false if there is none: then the goroutine ends.
func (l *lineQueue) pop() (next line, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.queue) > 0:
		next, l.queue[0], l.queue = l.queue[0], line{}, l.queue[1:]
		return next, true
	case l.dropped > 0:
		next = line{l.handler, slog.NewRecord(time.Now(), slog.LevelWarn, "holdfast: the log was too slow", 0)}
		next.record.Add("dropped", l.dropped)
		l.dropped = 0
		return next, true
	}
	close(l.written)
	l.queue, l.written = nil, nil
	return line{}, false
}

func (l *lineQueue) write(next line) {
	defer l.catchPanic()
	_ = next.handler.Handle(context.Background(), next.record) // nobody could be told
}

// catchPanic ends a panic. It must be deferred itself.
func (l *lineQueue) catchPanic() {
	if panicked := recover(); panicked != nil {
		l.panicked.Do(func() { fmt.Fprintln(os.Stderr, "holdfast: Config.Logger panicked:", panicked) })
	}
}

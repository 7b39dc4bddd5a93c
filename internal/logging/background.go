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

// A queueHandler queues lines for the handler of a user's logger, which another goroutine calls: a
// handler that blocks delays no caller. Enabled, WithAttrs and WithGroup still run in the caller's
// goroutine. A panic of any of them is caught. The first one goes to standard error, as the logger
// cannot be told.
type queueHandler struct {
	slog.Handler
	lines *lineQueue
}

// Background returns a logger that never panics, and whose lines delay no caller, however long the
// handler of logger takes for them. While 1,000 lines wait, later ones are dropped and counted.
func Background(logger *slog.Logger) *slog.Logger {
	return slog.New(queueHandler{logger.Handler(), &lineQueue{handler: logger.Handler()}})
}

// Flush waits until all lines of a Background logger are written, but not past a moment.
func Flush(logger *slog.Logger, until time.Time) {
	background, ok := logger.Handler().(queueHandler)
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
func (h queueHandler) Enabled(ctx context.Context, level slog.Level) bool {
	defer h.lines.catchPanic()
	return h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h queueHandler) Handle(_ context.Context, record slog.Record) error {
	h.lines.push(line{h.Handler, record.Clone()})
	return nil
}

// WithAttrs implements slog.Handler. After a panic the lines have no attributes.
func (h queueHandler) WithAttrs(attrs []slog.Attr) (next slog.Handler) {
	next = h
	defer h.lines.catchPanic()
	return queueHandler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler. After a panic the lines have no group.
func (h queueHandler) WithGroup(name string) (next slog.Handler) {
	next = h
	defer h.lines.catchPanic()
	return queueHandler{h.Handler.WithGroup(name), h.lines}
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

// pop takes the first line out of the queue. When it is empty and lines were dropped, the next line
// counts them. It returns false if there is none: then the goroutine ends.
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

// catchPanic ends a panic. Defer it directly: recover works only in the deferred function.
func (l *lineQueue) catchPanic() {
	if panicked := recover(); panicked != nil {
		l.panicked.Do(func() { fmt.Fprintln(os.Stderr, "holdfast: Config.Logger panicked:", panicked) })
	}
}

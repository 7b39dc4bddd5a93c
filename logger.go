package holdfast

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

// A backgroundHandler is the handler of a user's logger. The library logs from goroutines on which
// leases depend: the handler must not hold them up, and its panic must not end them. So another
// goroutine calls it. The first panic is told to standard error, as the logger cannot be told.
type backgroundHandler struct {
	slog.Handler
	lines *logLines
}

// inBackground returns a logger that neither blocks nor panics.
func inBackground(logger *slog.Logger) *slog.Logger {
	return slog.New(backgroundHandler{logger.Handler(), &logLines{handler: logger.Handler()}})
}

// Enabled implements slog.Handler.
func (h backgroundHandler) Enabled(ctx context.Context, level slog.Level) bool {
	defer h.lines.recovered()
	return h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h backgroundHandler) Handle(_ context.Context, record slog.Record) error {
	h.lines.push(line{h.Handler, record.Clone()})
	return nil
}

// WithAttrs implements slog.Handler.
func (h backgroundHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	defer h.lines.recovered()
	return backgroundHandler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h backgroundHandler) WithGroup(name string) slog.Handler {
	defer h.lines.recovered()
	return backgroundHandler{h.Handler.WithGroup(name), h.lines}
}

// A line waits for its handler.
type line struct {
	handler slog.Handler
	record  slog.Record
}

// logLines are the lines that wait for a user's logger. One goroutine writes them, and lives while
// there are any.
type logLines struct {
	handler slog.Handler
	told    sync.Once // of a panic

	mu      sync.Mutex
	queue   []line
	dropped int           // lines for which there was no room
	written chan struct{} // closed when all lines are written; nil: there are none
}

// push makes a line wait. If too many wait, it drops the line.
func (l *logLines) push(next line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == maxLines {
		l.dropped++
		return
	}
	l.queue = append(l.queue, next)
	if l.written == nil {
		l.written = make(chan struct{})
		go l.write()
	}
}

// write writes until no line waits.
func (l *logLines) write() {
	for next, ok := l.pop(); ok; next, ok = l.pop() {
		l.tell(next)
	}
}

// pop takes the first line out of the queue. The last one tells how many were dropped. False: there
// is none, and the goroutine ends.
func (l *logLines) pop() (next line, ok bool) {
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

func (l *logLines) tell(next line) {
	defer l.recovered()
	_ = next.handler.Handle(context.Background(), next.record) // nobody could be told
}

// recovered ends a panic. It must be deferred itself.
func (l *logLines) recovered() {
	if panicked := recover(); panicked != nil {
		l.told.Do(func() { fmt.Fprintln(os.Stderr, "holdfast: Config.Logger panicked:", panicked) })
	}
}

// awaitLog waits until all lines of a client's logger are written, but not past a moment.
func awaitLog(logger *slog.Logger, until time.Time) {
	background, ok := logger.Handler().(backgroundHandler)
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

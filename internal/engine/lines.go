package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// maxLines is how many lines wait for the log at most.
const maxLines = 1000

// logLines are the lines for the log, which one goroutine writes. It lives while there are lines.
// So a log that blocks delays nobody: no end of a lease, no renewal, no release, and no waiter.
type logLines struct {
	mu      sync.Mutex
	queue   []func()
	dropped int           // lines for which there was no room
	written chan struct{} // closed when all lines are written; nil: there are none
}

// log writes a line in the background.
func (e *Engine) log(level slog.Level, message string, values ...any) {
	e.write(func() { e.config.Logger.Log(context.Background(), level, message, values...) })
}

// warn queues a warning. It is called with the engine's mutex held, after what must happen before
// was queued there.
func (e *Engine) warn(message string, values ...any) {
	e.mu.after(func() { e.log(slog.LevelWarn, message, values...) })
}

// write runs what writes a line in the background. If too many lines wait, it drops the line.
func (e *Engine) write(line func()) {
	l := &e.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == maxLines {
		l.dropped++
		return
	}
	l.queue = append(l.queue, line)
	if l.written == nil {
		l.written = make(chan struct{})
		go e.writeLines()
	}
}

// writeLines writes until no line waits.
func (e *Engine) writeLines() {
	for line := e.lines.pop(e.config.Logger); line != nil; line = e.lines.pop(e.config.Logger) {
		line()
	}
}

// pop takes the first line out of the queue. The last one tells how many were dropped. Nil: there
// is none, and the goroutine ends.
func (l *logLines) pop(logger *slog.Logger) (line func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch dropped := l.dropped; {
	case len(l.queue) > 0:
		line = l.queue[0]
		l.queue[0], l.queue = nil, l.queue[1:]
	case dropped > 0:
		l.dropped = 0
		line = func() { logger.Warn("holdfast: the log was too slow", "dropped", dropped) }
	default:
		close(l.written)
		l.queue, l.written = nil, nil
	}
	return line
}

// await waits until all lines are written, but not past a moment.
func (l *logLines) await(until time.Time) {
	l.mu.Lock()
	written := l.written
	l.mu.Unlock()
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

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// cleanup gives a ticket back in the background. It goes on until that is certain, or until the
// server has forgotten the ticket anyway. It is certain when a request was answered that was sent
// after mayApplyUntil: then nothing of the ticket can take effect any more. A hand-over to the
// ticket may have overtaken its free, and goes back at once. Close waits for all cleanups: a
// caller is counted in busy, is Close itself, or found the engine open and holds the mutex since.
func (e *Engine) cleanup(l *Lock, request protocol.FreeRequest, until, mayApplyUntil time.Time) {
	e.busy.Go(func() {
		granted := make(chan struct{}, 1)
		e.mu.Lock()
		e.cleanups[request.Ticket.ID] = granted
		e.mu.Unlock()
		defer func() { // it waits for no hand-over any more
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.cleanups[request.Ticket.ID] == granted {
				delete(e.cleanups, request.Ticket.ID)
			}
		}()
		failures, last, freePace := 0, false, pace(l.options.TTL)
		for {
			e.awaitPace(context.Background(), &freePace)
			sent := time.Now()
			freePace.Sent(sent)
			ctx := deadline{context.Background(), sent.Add(l.timeout)}
			_, err := l.resource().Free(ctx, request)
			var pause time.Duration
			var failure *protocol.Failure
			if broken := (*protocol.Broken)(nil); errors.As(err, &broken) {
				err = nil
			}
			switch {
			case err == nil && sent.After(mayApplyUntil): // at that moment itself it may yet
				return
			case err == nil:
				pause = time.Until(mayApplyUntil) + time.Millisecond
			case errors.As(err, &failure) && failure.MustRepeat():
				failures++
				pause = backoff(failures)
			default:
				e.config.Logger.Warn("holdfast: cannot clean up", "name", l.name, "error", err)
				return
			}
			if last || time.Now().Add(pause).After(until) {
				return
			}
			timer := protocol.NewTimer(pause)
			select {
			case <-timer.C:
			case <-granted:
			case <-e.closing:
				last = true // Close waits for one more try
			}
			timer.Stop()
		}
	})
}

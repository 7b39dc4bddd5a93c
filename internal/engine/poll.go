package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// poll asks for a lock, or for the first of a group, again and again. It does not join the queue.
func poll[L any](ctx context.Context, c *call, o Options, once func(context.Context) (L, error)) (lease L, err error) {
	e, ended := c.engine, &WaitFailure{Kind: c.kind}
	var none L
	for n := 1; ; n++ {
		lease, err = once(ctx)
		held, again := ended.notePoll(ctx, err, n == 1)
		if !again {
			return lease, err
		}
		if n == o.Attempts && (held || !isOver(ctx)) {
			return none, e.orEnded(ctx, c.start, err)
		}
		if held {
			c.slow.locked(func(s *slowReport) { s.polled = ended.Answer })
			c.observeWait(Waiting)
		}
		if ctx.Err() == nil && e.pause(ctx, o.Interval) {
			continue
		}
		if ctx.Err() == nil {
			return none, e.config.Closed
		}
		ended.Err, ended.Waited = protocol.EndOf(ctx), time.Since(c.start)
		return none, ended
	}
}

// notePoll notes what became of one request. Held: others hold. Again: another request may help.
func (w *WaitFailure) notePoll(ctx context.Context, err error, first bool) (held, again bool) {
	var (
		busy    *BusyError
		failure *protocol.Failure
		over    *WaitFailure
	)
	switch {
	case errors.As(err, &busy):
		w.Answer, w.Answered, w.Failure = busy.Answer, true, nil
		return true, true
	case errors.As(err, &failure) && failure.Reason.Passing():
		if !isOver(ctx) { // otherwise it failed because the caller gave up
			w.Failure = err
		}
		return false, true
	}
	return false, errors.As(err, &over) && !first
}

// poll asks for the lock again and again. After an answer that others hold, another number of
// permits means that the name was resized: the next request is made with that number, at once.
func (l *Lock) poll(ctx context.Context, c *call) (*Lease, error) {
	accepted, last := false, (*BusyError)(nil)
	return poll(ctx, c, l.options, func(ctx context.Context) (*Lease, error) {
		for resizePace := pace(l.options.TTL); ; {
			a := l.newAttempt(c, 1)
			a.pace = resizePace
			lease, err := a.beginLease(a.try(ctx))
			resizePace = a.pace
			var busy *BusyError
			if errors.As(err, &busy) {
				accepted, last = true, busy
			} else if err == nil && last != nil && l.engine.config.Observe != nil {
				lease.before = &predecessor{answer: last.Answer}
			}
			other := l.withPermitsFrom(err)
			if !accepted || other == nil {
				return lease, err
			}
			l = other
		}
	})
}

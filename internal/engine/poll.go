package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// poll asks for a lock, or for the first of a group, again and again. It does not join the queue.
// Contended: the observer knows that the caller waited. Slow is the report of the wait, if any.
func poll[L any](ctx context.Context, l *Lock, o Options, slow *slowReport, once func(context.Context) (L, error)) (lease L, contended bool, err error) {
	e, ended := l.engine, &WaitEnded{Kind: l.spec.Kind}
	var none L
	for start, n := time.Now(), 1; ; n++ {
		lease, err = once(ctx)
		held, again := ended.polled(ctx, err, n == 1)
		if !again {
			return lease, contended, err
		}
		if n == o.Attempts && (held || !isOver(ctx)) {
			return none, contended, e.orEnded(ctx, start, err)
		}
		if held {
			slow.note(ended.Answer)
		}
		if held && !contended {
			contended = true
			e.observeWaiting(ctx, Waiting, l.spec.Kind, l.spec.Name)
		}
		if ctx.Err() == nil && e.pause(ctx, o.Interval) {
			continue
		}
		if ctx.Err() == nil {
			return none, contended, e.config.Closed
		}
		ended.Err, ended.Waited = protocol.EndOf(ctx), time.Since(start)
		return none, contended, ended
	}
}

// polled notes what became of one request. Held: others hold. Again: another request may help.
func (w *WaitEnded) polled(ctx context.Context, err error, first bool) (held, again bool) {
	var (
		busy    *Busy
		failure *protocol.Failure
		over    *WaitEnded
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
func (l *Lock) poll(ctx context.Context, slow *slowReport) (lease *Lease, contended bool, err error) {
	accepted, last := false, (*Busy)(nil)
	return poll(ctx, l, l.options, slow, func(ctx context.Context) (*Lease, error) {
		for resizes := pace(l.options.TTL); ; {
			a := l.newAttempt(1)
			a.pace = resizes
			lease, err := l.tryOnce(ctx, a)
			resizes = a.pace
			var busy *Busy
			if errors.As(err, &busy) {
				accepted, last = true, busy
			} else if err == nil && last != nil && l.engine.config.Observe != nil {
				lease.before = &predecessor{answer: last.Answer}
			}
			other := l.resized(err)
			if !accepted || other == nil {
				return lease, err
			}
			l = other
		}
	})
}

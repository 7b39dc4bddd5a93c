package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Latch is a name that opens when as many have counted down as were set. It has no state and is
// safe to share.
type Latch struct {
	engine   *Engine
	name     string
	ttl      time.Duration
	wait     time.Duration // of Wait; 0: none
	resource protocol.LatchResource

	unsupported error // why the protocol has no latches
}

// NewLatch binds a latch, whose Wait waits for at most so long; 0: as long as its context lasts. It
// sends nothing.
func (e *Engine) NewLatch(spec protocol.Spec, ttl, wait time.Duration) *Latch {
	spec.Kind = protocol.Latch
	spec.Claim = claim(ttl)
	l := &Latch{engine: e, name: spec.Name, ttl: ttl, wait: wait, resource: e.protocol.BindLatch(spec)}
	if why := e.features.NoLatches; why != "" {
		l.unsupported = &protocol.Failure{Op: "latch", Name: l.name, Reason: protocol.Unsupported, Err: errors.New(why)}
	}
	return l
}

// Set sets the count. False: the latch is set already, and is left as its standing says. The error
// is as Look's; a *protocol.Failure says whether the latch may have been set.
func (l *Latch) Set(ctx context.Context, count int64) (standing protocol.Standing, set bool, err error) {
	id := protocol.NewID()
	err = l.call(ctx, func(ctx context.Context, deadline, _ time.Time) (err error) {
		standing, set, err = l.resource.Set(ctx, id, count, l.ttl, deadline)
		return err
	})
	return standing, set, err
}

// CountDown takes one off the count; a latch that is not set stays so. The error is as Look's;
// a *protocol.Failure says whether one may have been taken off.
func (l *Latch) CountDown(ctx context.Context) (standing protocol.Standing, err error) {
	id := protocol.NewID()
	err = l.call(ctx, func(ctx context.Context, deadline, last time.Time) (err error) {
		standing, err = l.resource.CountDown(ctx, id, deadline, last)
		return err
	})
	return standing, err
}

// Look returns the standing of the latch. The error is a *WaitFailure, the Closed error,
// a *protocol.Foreign or a *protocol.Failure.
func (l *Latch) Look(ctx context.Context) (standing protocol.Standing, err error) {
	err = l.call(ctx, func(ctx context.Context, _, _ time.Time) (err error) {
		standing, err = l.resource.Look(ctx, nil)
		return err
	})
	return standing, err
}

// Wait waits until the latch is open. The error is a *WaitFailure, the Closed error, a
// *protocol.Foreign or a *protocol.Failure that waiting does not cure.
func (l *Latch) Wait(ctx context.Context) error {
	if err := l.engine.admitCall(l.unsupported); err != nil {
		return err
	}
	defer l.engine.busy.Done()
	ctx, cancel := boundedWait(ctx, l.wait)
	defer cancel()
	subject := subject{l.resource, protocol.Latch, l.name, l.ttl}
	return l.engine.watchFor(ctx, subject, &protocol.Pace{}, func(s protocol.Standing) bool {
		return s.Latch == protocol.LatchOpen
	})
}

// call sends a request until an answer comes or the call's time is over. Send gets the deadline of
// the request and the end of that time. If the outcome of one request is unknown, that of the call
// is, whatever failed after it.
func (l *Latch) call(ctx context.Context, send func(ctx context.Context, deadline, last time.Time) error) error {
	if err := l.engine.admitCall(l.unsupported); err != nil {
		return err
	}
	e := l.engine
	defer e.busy.Done()
	start, until := time.Now(), time.Now().Add(e.config.ReleaseTimeout)
	for failures, unknown := 1, false; ; failures++ {
		if err := e.check(ctx); err != nil && failures == 1 {
			return err
		}
		deadline := earlier(until, time.Now().Add(timeout(l.ttl)))
		request, cancel := context.WithDeadline(ctx, deadline)
		err := send(request, deadline, until)
		cancel()
		var failure *protocol.Failure
		if !errors.As(err, &failure) {
			return err
		}
		unknown = unknown || failure.Unknown
		again := failure.MustRepeat()
		if pause := backoff(failures); again && time.Now().Add(pause).Before(until) && ctx.Err() == nil &&
			e.pause(ctx, pause) {
			continue
		}
		failed := failure.OrUnknown(unknown)
		switch {
		case e.hasEnded(ctx):
			return &WaitFailure{Err: protocol.EndOf(ctx), Waited: time.Since(start), Failure: failed}
		case again && e.check(ctx) != nil:
			return e.config.Closed
		}
		return failed
	}
}

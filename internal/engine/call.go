package engine

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// admitCall counts a call in, so that Close can wait for what it leaves behind. After nil the
// caller must call e.busy.Done. A call that is refused for a reason is not counted: the error is
// that reason, or the Closed error.
func (e *Engine) admitCall(refused error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.config.Closed
	}
	if refused == nil {
		e.busy.Add(1)
	}
	return refused
}

// do makes a call of a few requests, which send sends, unless it is refused. If the call got no
// answer and its ctx is over, it was ctx that ended it.
func (e *Engine) do(ctx context.Context, refused error, send func() error) error {
	if err := e.admitCall(refused); err != nil {
		return err
	}
	defer e.busy.Done()
	if err := e.check(ctx); err != nil {
		return err
	}
	since := time.Now()
	return e.orEnded(ctx, since, send())
}

// check refuses a call on a closed engine, or under a ctx that is over.
func (e *Engine) check(ctx context.Context) error {
	select {
	case <-e.closing:
		return e.config.Closed
	default:
	}
	if ctx.Err() != nil {
		return notSentError(ctx)
	}
	return nil
}

// notSentError is the error of a call whose ctx is over before anything is sent, which says nothing
// of the server. If only the time to wait is over, the caller knows no more than without an answer.
func notSentError(ctx context.Context) *WaitFailure {
	end := protocol.EndOf(ctx)
	return &WaitFailure{Err: end, Answered: !errors.Is(end, protocol.ErrWaitOver)}
}

// A call is one call of a caller that wants a lease, or waits for a state of a name. It is passed
// down to all that happens for the caller, and tells the observer of that. Only the goroutine of
// the caller uses it, but for the fields that never change.
type call struct {
	engine    *Engine
	kind      protocol.Kind
	name      string
	spec      *protocol.Spec  // of the lock; nil: the caller wants no lease
	ctx       context.Context // of the caller
	start     time.Time
	contended bool        // the observer knows that the caller waits
	slow      *slowReport // of its wait, and then of its lease; nil: none is reported
}

// silentCall is a call that is part of another one: the observer is not told how it ends.
func (l *Lock) silentCall(ctx context.Context) *call {
	return &call{engine: l.engine, kind: l.spec.Kind, name: l.name, spec: &l.spec, ctx: ctx, start: time.Now()}
}

// newCall begins a call. It must end with call.end.
func (l *Lock) newCall(ctx context.Context) *call {
	e := l.engine
	c := &call{engine: e, kind: l.spec.Kind, name: l.name, spec: &l.spec, ctx: ctx, start: time.Now()}
	if e.takesStacks && (e.config.Answer != nil || !l.lastsByDesign()) {
		e.mu.Lock()
		c.slow = e.slow.begin(c, l)
		e.mu.Unlock()
		c.slow.depth = runtime.Callers(2, c.slow.frames[:])
	}
	return c
}

// observeWait tells the observer, once, that the caller has to wait.
func (c *call) observeWait(kind EventKind) {
	if !c.contended {
		c.contended = true
		c.engine.observe(c.event(kind))
	}
}

// observeRetry tells the observer that a request failed and will be tried again.
func (c *call) observeRetry(err error) {
	event := c.event(Retried)
	event.Took, event.Err = 0, err
	c.engine.observe(event)
}

func (c *call) event(kind EventKind) Event {
	return Event{Kind: kind, Lock: c.kind, Name: c.name, Context: c.ctx, Contended: c.contended, Spec: c.spec}
}

// end tells the observer how the call ended, and returns that. A reentry is no news.
func (c *call) end(lease *Lease, err error) (*Lease, error) {
	if !c.engine.observed {
		return lease, err
	}
	if err == nil && lease.outermost == nil {
		c.observeLease(lease)
		return lease, nil
	}
	c.slow.locked((*slowReport).recycle)
	if err != nil && c.engine.config.Observe != nil {
		c.observeFailure(err)
	}
	return lease, err
}

// observeFailure tells the observer that the call ended without a lease.
func (c *call) observeFailure(err error) {
	event := c.event(Refused)
	event.Took, event.Err = time.Since(c.start), err
	var waited *WaitFailure
	var busy *BusyError
	switch {
	case errors.As(err, &waited):
		event.Kind = GaveUp
		c.engine.addHolder(&event, predecessor{waited.Answer, waited.holderContext})
	case c.contended:
		event.Kind = GaveUp
	}
	if errors.As(err, &busy) {
		c.engine.addHolder(&event, predecessor{answer: busy.Answer})
	}
	c.engine.observe(event)
}

// observeLease tells the observer that a lease began. If the lease ended meanwhile, that is told
// after it.
func (c *call) observeLease(lease *Lease) {
	e, t := c.engine, lease.tenure
	c.slow.locked((*slowReport).stop)                // what the observer does is no wait for the lock
	event, now := c.event(Granted), t.hold.heldSince // the clock is read once for a grant
	if t != &t.hold.firstTenure || lease != &t.inlineLease {
		event.Kind, now = Passed, time.Now()
	}
	if e.config.Observe != nil {
		event.Token, event.Took, event.At = t.token, now.Sub(c.start), now
		if before := lease.before; before != nil {
			lease.before = nil
			e.addHolder(&event, *before)
		}
		e.observe(event)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	lease.told, lease.toldAfter, lease.contended = true, now.Sub(t.hold.heldSince), c.contended
	lease.slow = c.slow.follow(lease)
	if t.lossCause != nil {
		e.queueEnd(lease, t.lossCause)
	}
}

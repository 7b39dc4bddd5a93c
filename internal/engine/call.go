package engine

import (
	"context"
	"errors"
	"time"
)

// A call is one call of a caller that wants a lease, as the observer sees it.
type call struct {
	lock  *Lock
	ctx   context.Context
	start time.Time
	stack callStack   // empty if nothing slow is reported
	slow  *slowReport // of its wait; nil: none is reported
}

// newCall is a call that began at a moment.
func (l *Lock) newCall(ctx context.Context, start time.Time) call {
	c := call{lock: l, ctx: ctx, start: start}
	c.stack.take(l.engine.reportsSlow)
	return c
}

// ended tells the observer how the call ended, and returns that.
func (c *call) ended(lease *Lease, contended bool, err error) (*Lease, error) {
	c.tell(lease, contended, err)
	return lease, err
}

// tell tells the observer how the call ended. A reentry is no news.
func (c *call) tell(lease *Lease, contended bool, err error) {
	if err == nil && lease.family == nil {
		c.began(lease, contended)
		return
	}
	c.forgetWait()
	if err != nil && c.lock.engine.config.Observe != nil {
		c.failed(contended, err)
	}
}

// event is one of the call that happens at a moment.
func (c *call) event(kind EventKind, contended bool, now time.Time) Event {
	return Event{Kind: kind, Lock: c.lock.spec.Kind, Name: c.lock.spec.Name, Context: c.ctx, Contended: contended, Took: now.Sub(c.start)}
}

// failed tells that the call ended without a lease.
func (c *call) failed(contended bool, err error) {
	e, event := c.lock.engine, c.event(Refused, contended, time.Now())
	var waited *WaitEnded
	var busy *Busy
	switch {
	case errors.As(err, &waited):
		event.Kind = GaveUp
		e.tellHolder(&event, predecessor{waited.Answer, waited.local})
	case contended:
		event.Kind = GaveUp
	}
	if errors.As(err, &busy) {
		e.tellHolder(&event, predecessor{answer: busy.Answer})
	}
	event.Err = err
	e.observe(event)
}

// began tells that a lease began. If the lease ended meanwhile, that is told after it.
func (c *call) began(lease *Lease, contended bool) {
	e, t := c.lock.engine, lease.tenure
	if c.slow == nil && !e.tells() {
		return
	}
	kind, now := Granted, t.since // the clock is read once for a grant
	if t != &t.hold.firstTenure || lease != &t.firstLease {
		kind, now = Passed, time.Now()
	}
	if e.config.Observe != nil {
		c.forgetWait() // what the observer does is no wait for the lock
		event := c.event(kind, contended, now)
		event.Token = t.token
		if before := lease.before; before != nil {
			lease.before = nil
			e.tellHolder(&event, *before)
		}
		e.observe(event)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	lease.toldAt, lease.contended = now, contended
	lease.slow = c.slowHold(lease)
	if t.lossCause != nil {
		e.reportEnd(lease, t.lossCause)
	}
}

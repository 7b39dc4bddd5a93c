package wire

import (
	"context"
	"sync"
	"time"
)

// A deadlineContext is a context with a deadline, for one request or batch. It costs nothing more
// if the store only reads the deadline. Clients that may have to wait for a connection ask for Done
// with every request. A timer for each would cost more than the request, because arming a timer
// that becomes the earliest one wakes an OS thread. So all share one timer.
type deadlineContext struct {
	deadline time.Time
	all      *deadlines
	done     chan struct{} // guarded by all.mu; nil: Done was not called
}

// Deadline implements context.Context.
func (c *deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *deadlineContext) Done() <-chan struct{} {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		c.all.add(c)
	}
	return c.done
}

// Err implements context.Context.
func (c *deadlineContext) Err() error {
	if time.Now().Before(c.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements context.Context.
func (c *deadlineContext) Value(any) any { return nil }

// release forgets the context once its request is answered: nothing waits for its end any more. A
// channel of Done that is still open then stays open.
func (c *deadlineContext) release() {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
}

// deadlines are the contexts whose Done was called and that neither ended nor were released, with
// one timer for the first of them to end. The timer stays armed when that context is released. It
// fires for nothing at most once a deadline, which costs less than arming it for every request.
type deadlines struct {
	mu    sync.Mutex // guards all below, and done of each context
	open  map[*deadlineContext]struct{}
	timer *time.Timer
	armed time.Time // when the timer fires; zero: not armed
}

// add has a context ended at its deadline. mu is held.
func (d *deadlines) add(c *deadlineContext) {
	if d.open == nil {
		d.open = make(map[*deadlineContext]struct{})
	}
	d.open[c] = struct{}{}
	if d.armed.IsZero() || c.deadline.Before(d.armed) {
		d.arm(c.deadline)
	}
}

// arm sets the timer. mu is held.
func (d *deadlines) arm(at time.Time) {
	d.armed = at
	if wait := time.Until(at); d.timer == nil {
		d.timer = time.AfterFunc(wait, d.tick)
	} else {
		d.timer.Reset(wait)
	}
}

// tick ends the contexts whose deadline is over, and arms the timer for the next. The timer runs
// it.
func (d *deadlines) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first time.Time
	now := time.Now()
	for c := range d.open {
		switch {
		case !c.deadline.After(now):
			close(c.done)
			delete(d.open, c)
		case first.IsZero() || c.deadline.Before(first):
			first = c.deadline
		}
	}
	d.armed = time.Time{}
	if !first.IsZero() {
		d.arm(first)
	}
}

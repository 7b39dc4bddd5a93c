package wire

import (
	"context"
	"sync"
	"time"
)

// An until is a context with a deadline, for one request or batch. It costs nothing more if the
// store only reads the deadline. Clients that may have to wait for a connection ask for Done with
// every request. A timer for each would cost more than the request, because arming a timer that
// becomes the earliest one wakes an OS thread. So all share one timer.
type until struct {
	deadline time.Time
	all      *deadlines
	done     chan struct{} // guarded by all.mu; nil: Done was not called
}

// Deadline implements context.Context.
func (u *until) Deadline() (time.Time, bool) { return u.deadline, true }

// Done implements context.Context.
func (u *until) Done() <-chan struct{} {
	u.all.mu.Lock()
	defer u.all.mu.Unlock()
	if u.done == nil {
		u.done = make(chan struct{})
		u.all.add(u)
	}
	return u.done
}

// Err implements context.Context.
func (u *until) Err() error {
	if time.Now().Before(u.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements context.Context.
func (u *until) Value(any) any { return nil }

// over says that the request is answered: nothing waits for its deadline any more.
func (u *until) over() {
	u.all.mu.Lock()
	delete(u.all.open, u)
	u.all.mu.Unlock()
}

// deadlines are the contexts under way whose Done was called, with one timer for the first to end.
// The timer stays armed when that context is over. It fires for nothing at most once a deadline,
// which costs less than arming it for every request.
type deadlines struct {
	mu    sync.Mutex
	open  map[*until]struct{}
	timer *time.Timer
	armed time.Time // when the timer fires; zero: not armed
}

// add is called with mu held.
func (d *deadlines) add(u *until) {
	if d.open == nil {
		d.open = make(map[*until]struct{})
	}
	d.open[u] = struct{}{}
	if d.armed.IsZero() || u.deadline.Before(d.armed) {
		d.arm(u.deadline)
	}
}

func (d *deadlines) arm(at time.Time) {
	d.armed = at
	if wait := time.Until(at); d.timer == nil {
		d.timer = time.AfterFunc(wait, d.tick)
	} else {
		d.timer.Reset(wait)
	}
}

// tick ends the contexts whose deadline is over.
func (d *deadlines) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first time.Time
	now := time.Now()
	for u := range d.open {
		switch {
		case !u.deadline.After(now):
			close(u.done)
			delete(d.open, u)
		case first.IsZero() || u.deadline.Before(first):
			first = u.deadline
		}
	}
	d.armed = time.Time{}
	if !first.IsZero() {
		d.arm(first)
	}
}

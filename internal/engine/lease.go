package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Lease is one entry into a hold. All methods are safe for concurrent use.
type Lease struct {
	tenure *localTenure
	parent context.Context

	// Guarded by the engine's mutex.
	shared   bool // it does not exclude others who share
	released bool
	stopped  bool // it was released after it was lost

	// The lease as the observer knows it.
	told      bool // that it began, and not that it ended
	contended bool // the caller had to wait

	// A lease that entered under the context of another knows the outermost of these leases; nil:
	// it entered under none. That one counts how many of all of them are not released.
	outermost *Lease
	members   int32

	index  int32 // in the entries of the tenure, until it is released
	ctx    context.Context
	cancel context.CancelCauseFunc

	// The holder that the caller waited for; nil: it did not wait, or nothing is told. It is set
	// before the caller gets the lease, and only the caller reads it.
	before *predecessor

	toldAfter time.Duration // how long after hold.heldSince the observer was told that the lease began
	slow      *slowReport   // with the stack of its call; nil: holds are neither reported nor asked for
}

// toldAt is when the observer was told that the lease began.
func (l *Lease) toldAt() time.Time { return l.tenure.hold.heldSince.Add(l.toldAfter) }

// enter is reentry: under the context of a lease of this name, its hold gets one more entry. An
// entry that excludes others is refused where only readers are in. Permits are taken, not entered.
func (l *Lock) enter(ctx context.Context) (*Lease, error) {
	if ctx.Value(leaseKey{}) == nil || l.spec.Kind == protocol.Semaphore {
		return nil, nil
	}
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	outer := findLease(ctx, func(outer *Lease) bool {
		h := outer.tenure.hold
		return h.lock.engine == e && h.lock.name == l.name && h.lock.spec.Kind == l.spec.Kind &&
			!outer.released && h.isLive() && outer.tenure.lossCause == nil && !isPast(h.end(), time.Now())
	})
	switch {
	case outer == nil:
		return nil, nil
	case !l.spec.Shared && outer.tenure.writers == 0:
		return nil, ErrReader
	}
	entry := outer.tenure.addLease(ctx, l.spec.Shared)
	entry.outermost, entry.members = outer.head(), 0
	entry.outermost.members++
	return entry, nil
}

func (l *Lease) engine() *Engine { return l.tenure.hold.lock.engine }

// Name is the name that is held.
func (l *Lease) Name() string { return l.tenure.hold.lock.name }

// Token is the fencing token of the tenure.
func (l *Lease) Token() int64 { return l.tenure.token }

// Tokens is the token by name.
func (l *Lease) Tokens() map[string]int64 { return map[string]int64{l.Name(): l.Token()} }

// Owner is the owner, or the id of the hold when the lock was made without one.
func (l *Lease) Owner() string {
	h := l.tenure.hold
	return cmp.Or(h.lock.spec.Owner, string(h.ticket.ID))
}

// Until is the moment at which trust ends if no renewal is confirmed before. After the end it is
// a moment in the past.
func (l *Lease) Until() time.Time {
	e := l.engine()
	e.mu.Lock()
	defer e.mu.Unlock()
	l.expireIfPast()
	end := l.tenure.hold.end()
	if now := time.Now(); l.released || l.tenure.lossCause != nil && end.After(now) {
		return now
	}
	return end
}

// Context carries the values of the context that the lock was taken with, and ends with the lease.
func (l *Lease) Context() context.Context {
	e := l.engine()
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.ctx == nil {
		values := context.WithValue(context.WithoutCancel(l.parent), leaseKey{}, l)
		l.ctx, l.cancel = context.WithCancelCause(values)
		if l.tenure.lossCause != nil {
			l.cancel(l.tenure.lossCause)
		} else if l.released {
			l.cancel(context.Canceled)
		}
	}
	return l.ctx
}

// Carry is a context with this lease in it that ends when ctx does. A lock under it enters the
// hold.
func (l *Lease) Carry(ctx context.Context) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// Err is nil while the lease can be trusted, by the clocks themselves. Then it is the cause of the
// loss, or ErrNotHeld once the lease was released.
func (l *Lease) Err() error {
	e := l.engine()
	e.mu.Lock()
	defer e.mu.Unlock()
	return l.endErrorLocked()
}

// endErrorLocked is Err with the engine's mutex held.
func (l *Lease) endErrorLocked() error {
	l.expireIfPast()
	if l.released {
		return ErrNotHeld
	}
	return l.tenure.lossCause
}

// expireIfPast ends the hold of a lease if its trust is over by the clocks. The engine's mutex is
// held.
func (l *Lease) expireIfPast() {
	if !l.released {
		l.engine().expireIfPast(l.tenure.hold, time.Now())
	}
}

// Check asks the server. Nil: the hold was there. The cause of its loss when it was not. A
// *protocol.Failure when no answer came; that changes nothing.
func (l *Lease) Check(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.engine().check(ctx); err != nil {
		return err
	}
	h := l.tenure.hold
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, h.lock.timeout)
	defer cancel()
	err := l.engine().queryHold(bounded, h)
	if lost := l.Err(); lost != nil {
		return lost
	}
	return l.engine().orEnded(ctx, began, err)
}

// Release gives this entry back, and the hold with the last entry. Nil: it is given back.
// ErrNotHeld: it had been before. The cause of a loss. An *UncertainError when the server did not
// answer in time: what is left is removed in the background, or by the server when its time is
// over. Or it is ErrGoneLater.
func (l *Lease) Release() error {
	e, h := l.engine(), l.tenure.hold
	e.mu.Lock()
	if l.released {
		e.mu.Unlock()
		return ErrNotHeld
	}
	l.expireIfPast()
	if cause := l.tenure.lossCause; cause != nil {
		e.noteStopped(l)
		e.mu.Unlock()
		return cause
	}
	lastWriter := l.leaveTenure()
	others := len(l.tenure.entries) > 0
	event, told := Event{}, false
	if l.head().members == 0 {
		event, told = l.head().endReport(Released)
	}
	passed := !others && e.settleHold(h)
	e.mu.Unlock()
	switch {
	case others && lastWriter:
		event.Err = e.downgradeForReaders(l)
	case others || passed:
	default:
		var lost bool
		if lost, event.Err = e.free(h, time.Now().Add(e.config.ReleaseTimeout)); lost {
			event.Kind = LostHold
		}
		e.busy.Done()
	}
	if told {
		e.observe(event)
	}
	return event.Err
}

// leaveTenure takes a lease out of its tenure. It reports whether that was the last one that
// excludes others who can share. The engine's mutex is held.
func (l *Lease) leaveTenure() (lastWriter bool) {
	l.released = true
	delete(l.engine().wanted, l)
	l.head().members--
	l.tenure.removeEntry(l)
	if h := l.tenure.hold; len(l.tenure.entries) > 0 || h.state == holdDetached {
		l.engine().noteLeft(l)
	}
	if cancel := l.cancel; cancel != nil {
		l.engine().mu.after(func() { cancel(context.Canceled) })
	}
	return !l.shared && l.tenure.removeWriter()
}

// A localTenure is the time in which one local holder has a hold, with all that enter under its
// leases; readers of one process share one. The engine's mutex guards its fields, except hold and
// token, which never change.
type localTenure struct {
	hold      *hold
	token     int64
	lossCause error    // once lost, or ended by Close
	entries   []*Lease // the leases that were not released, in no order
	writers   int32    // of the entries, those that exclude others
	stopped   int32    // of the entries, those that were released after the loss

	// Most tenures have one lease. It is made with the tenure.
	inlineLease Lease
	oneEntry    [1]*Lease
}

// beginTenure starts the next tenure of a hold, with one lease. Most holds have one tenure; it is
// made with the hold. The engine's mutex is held, as in the functions below.
func (h *hold) beginTenure(ctx context.Context) *Lease {
	if h.tenure == nil {
		h.tenure = &h.firstTenure
	} else {
		h.tenure = new(localTenure)
	}
	// The hold may be lost before its first tenure begins: then its lease is lost from the start.
	h.tenure.hold, h.tenure.token, h.tenure.lossCause = h, h.token, h.lossCause
	return h.tenure.addLease(ctx, h.lock.spec.Shared)
}

func (t *localTenure) addLease(ctx context.Context, shared bool) *Lease {
	if !shared {
		t.writers++
	}
	if t.inlineLease.tenure == nil {
		t.inlineLease = Lease{tenure: t, parent: ctx, shared: shared, members: 1}
		t.oneEntry[0] = &t.inlineLease
		t.entries = t.oneEntry[:]
		return &t.inlineLease
	}
	l := &Lease{tenure: t, parent: ctx, shared: shared, members: 1, index: int32(len(t.entries))}
	t.entries = append(t.entries, l)
	return l
}

// removeEntry takes a lease out of the tenure. The last entry takes its place in the list.
func (t *localTenure) removeEntry(l *Lease) {
	last := len(t.entries) - 1
	moved := t.entries[last]
	t.entries[l.index], moved.index = moved, l.index
	t.entries[last] = nil
	t.entries = t.entries[:last]
}

// removeWriter takes an entry that excludes others out of the count. It reports whether that was
// the last one, of a name that others can share.
func (t *localTenure) removeWriter() bool {
	t.writers--
	return t.writers == 0 && t.hold.lock.spec.Kind == protocol.ReadWrite
}

// beginHold begins the first tenure of a hold, unless the engine was closed meanwhile. The pool is
// nil where none waited for the hold. The engine's mutex is held.
func (l *Lock) beginHold(c *call, h *hold, p *pool) (*Lease, error) {
	e := l.engine
	if e.closed {
		return nil, e.config.Closed
	}
	h.pool = p
	lease := h.beginTenure(c.ctx)
	lease.before = h.before
	live := h.isLive() // it may have been lost since it was won
	passable := live && l.spec.Kind != protocol.Semaphore
	switch {
	case p != nil && !passable: // the next goroutine of the pool needs a hold of its own
		e.promoteNext(h)
	case l.joinable && live:
		e.openToReaders(h, l.key())
	case p != nil && len(p.waiters) > 0:
		e.scheduleCheck()
	}
	return lease, nil
}

package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A localTenure is the time in which one local holder has a hold, with all that enter under its
// leases; readers of one process share one. The engine's mutex guards its fields, except hold,
// token and since, which never change.
type localTenure struct {
	hold      *hold
	token     int64
	since     time.Time
	lossCause error    // once lost, or ended by Close
	entries   []*Lease // the leases that were not released, in no order
	writers   int      // of the entries, those that exclude others
	stopped   int      // of the entries, those that were released after the loss

	// Most tenures have one lease. It is made with the tenure.
	firstLease Lease
	oneEntry   [1]*Lease
}

// beginTenure starts the next tenure of a hold, with one lease. Most holds have one tenure; it is
// made with the hold. The engine's mutex is held, as in all methods of this file.
func (h *hold) beginTenure(ctx context.Context) *Lease {
	if h.tenure == nil {
		h.tenure, h.firstTenure.since = &h.firstTenure, h.heldSince
	} else {
		h.tenure = &localTenure{since: time.Now()}
	}
	// The hold may be lost before its first tenure begins: then its lease is lost from the start.
	h.tenure.hold, h.tenure.token, h.tenure.lossCause = h, h.token, h.lossCause
	return h.tenure.addLease(ctx, h.lock.spec.Shared)
}

// addLease adds an entry to a tenure.
func (t *localTenure) addLease(ctx context.Context, shared bool) *Lease {
	if !shared {
		t.writers++
	}
	if t.firstLease.tenure == nil {
		t.firstLease = Lease{tenure: t, parent: ctx, shared: shared, members: 1}
		t.oneEntry[0] = &t.firstLease
		t.entries = t.oneEntry[:]
		return &t.firstLease
	}
	l := &Lease{tenure: t, parent: ctx, shared: shared, members: 1, index: len(t.entries)}
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

// removeWriter takes an entry that excludes others out of the count. It tells whether that was the
// last one, of a name that others can share.
func (t *localTenure) removeWriter() bool {
	t.writers--
	return t.writers == 0 && t.hold.lock.spec.Kind == protocol.ReadWrite
}

// firstLease begins the first tenure of a hold, unless the engine was closed meanwhile. The pool is
// nil where none waited for the hold. The engine's mutex is held.
func (l *Lock) firstLease(c *call, h *hold, p *pool) (*Lease, error) {
	e := l.engine
	if e.closed {
		return nil, e.config.Closed
	}
	h.pool = p
	lease := h.beginTenure(c.ctx)
	lease.before = h.before
	live := h.live() // it may have been lost since it was won
	passable := live && l.spec.Kind != protocol.Semaphore
	switch {
	case p != nil && !passable: // the next goroutine of the pool needs a hold of its own
		e.promoteNext(h)
	case l.joinable && live:
		e.openToReaders(h, l.key)
	case p != nil && p.waiters.Len() > 0:
		e.listenSoon()
	}
	return lease, nil
}

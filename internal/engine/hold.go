package engine

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A holdState is where a hold is in its life. See the package document.
type holdState int

const (
	holdHeld        holdState = iota // as its lock asked for it: it excludes others, or it shares
	holdDowngrading                  // a request to share is under way, or may have been applied
	holdSharing                      // it was downgraded
	holdReleasing                    // it is being given back, or was
	holdLost                         // no lease on it is trusted; the server may still keep it
	holdCleared                      // lost, and the server denied it or its cleanup was scheduled
)

// holdMoves are the states that may follow each state.
var holdMoves = [...][]holdState{
	holdHeld:        {holdDowngrading, holdReleasing, holdLost, holdCleared},
	holdDowngrading: {holdHeld, holdSharing, holdReleasing, holdLost, holdCleared},
	holdSharing:     {holdReleasing, holdLost, holdCleared},
	holdReleasing:   {},
	holdLost:        {holdCleared},
	holdCleared:     {},
}

func (s holdState) String() string {
	return [...]string{"held", "downgrading", "sharing", "releasing", "lost", "cleared"}[s]
}

// A hold is one hold at the server. Its local holders follow one another, each with a tenure. Its
// fields are guarded by the engine's mutex.
type hold struct {
	state holdState

	lock   *Lock
	ticket protocol.Ticket

	grantToken int64 // the first token of the grant
	token      int64 // the token of the present tenure
	lastToken  int64 // the last token that the grant reserved

	grantedAt int64     // server time, microseconds
	askedAt   time.Time // when its caller began to wait
	heldSince time.Time // when this process learned of the grant

	trust    time.Time     // when trust ends, by the last confirmation; the margin is taken off
	ceiling  time.Time     // the end of the max hold, less the margin; zero: no max hold
	renewAt  time.Time     // when the watchdog renews it; zero: never
	renewing chan struct{} // closed with the answer to the renewal under way; nil: none is
	failure  error         // of the last renewal; nil if it was answered

	forms forms // what its request may have to name at the server

	pool          *pool        // where it passes from goroutine to goroutine; nil: it is not passed on
	ownerExposed  bool         // a caller asked for its id: it is not passed on any more
	tenure        *localTenure // the present one; nil before the first
	firstTenure   localTenure  // most holds have one, which costs no allocation of its own
	joinableUntil time.Time    // of readers: when goroutines stop joining it

	querying   bool   // a message says that it was taken over: the server is asked
	replacedBy string // the label of the caller that took it over
	lossCause  error  // once lost

	mayApplyUntil time.Time // until then a request of its ticket may still take effect

	dueAt time.Time // when the watchdog has to look at it
	index int       // in the watchdog's heap; -1: not there
}

// to moves the hold to another state. It returns false and changes nothing if the present state
// does not allow that. The engine's mutex is held.
func (h *hold) to(next holdState) bool {
	if !slices.Contains(holdMoves[h.state], next) {
		return false
	}
	h.state = next
	return true
}

// live tells whether the hold is neither lost nor being given back. The engine's mutex is held.
func (h *hold) live() bool {
	switch h.state {
	case holdHeld, holdDowngrading, holdSharing:
		return true
	}
	return false
}

// forms are what a hold may be at the server: its form, and what a downgrade may have made of it.
type forms struct {
	now  *Lock
	next *Lock // nil: no downgrade is under way
}

// all are the forms in the order in which a hold can become them.
func (f forms) all() []*Lock {
	if f.next == nil {
		return []*Lock{f.now}
	}
	return []*Lock{f.now, f.next}
}

// end is when trust ends, as far as is known now.
func (h *hold) end() time.Time { return earlier(h.ceiling, h.trust) }

// confirm notes that the server keeps the hold for ttl, counted from the moment sent at which the
// request for that was sent. A renewal is due after a third of it. The claim of a hand-over is
// shorter than the lock's TTL, and is renewed sooner.
func (h *hold) confirm(sent time.Time, ttl time.Duration) {
	h.trust = sent.Add(ttl - margin(ttl))
	h.failure = nil
	h.renewAt = time.Time{}
	if !h.lock.options.Fixed && (h.ceiling.IsZero() || h.trust.Before(h.ceiling)) {
		h.renewAt = sent.Add(ttl / 3)
		if ttl < h.lock.options.TTL { // a claim
			h.renewAt = sent.Add(ttl / 10)
		}
	}
}

// renewed wakes the goroutines that wait for the renewal under way, or for the downgrade in its
// place. The engine's mutex is held.
func (h *hold) renewed() {
	if h.renewing != nil {
		close(h.renewing)
		h.renewing = nil
	}
}

// newHold makes the hold that an attempt won. From is a local moment that is certainly before the
// grant; ttl counts from it. It returns nil if trust in the hold is over already.
func (a *attempt) newHold(token, block, server int64, from time.Time, ttl time.Duration) *hold {
	h := &hold{
		lock: a.lock, forms: forms{now: a.lock}, ticket: a.ticket,
		grantToken: token, token: token, lastToken: token + block - 1,
		grantedAt: server, askedAt: a.since, heldSince: time.Now(),
		mayApplyUntil: a.mayApplyUntil, index: -1,
	}
	if maxHold := a.lock.options.MaxHold; maxHold > 0 {
		h.ceiling = from.Add(maxHold - margin(maxHold)) // clocks drift apart for that long
	}
	h.confirm(from, ttl)
	if past(h.end(), h.heldSince) {
		return nil
	}
	return h
}

// firstLease begins the first tenure of a hold, unless the engine was closed meanwhile. The pool is
// nil where none waited for the hold. The engine's mutex is held.
func (l *Lock) firstLease(ctx context.Context, h *hold, p *pool) (*Lease, error) {
	e := l.engine
	if e.closed {
		return nil, e.config.Closed
	}
	h.pool = p
	lease := h.beginTenure(ctx)
	switch {
	case p != nil && (!h.live() || l.spec.Kind == protocol.Semaphore): // nothing for the others of the pool
		e.promoteNext(h)
	case l.joinable && h.live():
		e.openToReaders(h, l.poolKey())
	}
	e.report(h.event(Granted, h.heldSince.Sub(h.askedAt)))
	return lease, nil
}

func (h *hold) event(kind EventKind, took time.Duration) Event {
	return Event{Kind: kind, Name: h.lock.spec.Name, Token: h.token, Took: took}
}

// A localTenure is a hold in the hands of one local holder, and of those that enter under its
// leases. Its fields are guarded by the engine's mutex.
type localTenure struct {
	hold      *hold
	token     int64
	since     time.Time
	lossCause error    // once lost, or ended by Close
	entries   []*Lease // the leases that were not released, in no order
	writers   int      // of the entries, those that exclude others

	// Most tenures have one lease. It is made with the tenure.
	firstLease Lease
	oneEntry   [1]*Lease
}

// beginTenure starts a tenure. Most holds have one; it is made with the hold.
func (h *hold) beginTenure(ctx context.Context) *Lease {
	if h.tenure == nil {
		h.tenure, h.firstTenure.since = &h.firstTenure, h.heldSince
	} else {
		h.tenure = &localTenure{since: time.Now()}
	}
	h.tenure.hold, h.tenure.token, h.tenure.lossCause = h, h.token, h.lossCause
	return h.tenure.addLease(ctx, h.lock.spec.Shared)
}

// addLease adds an entry to a tenure.
func (t *localTenure) addLease(ctx context.Context, shared bool) *Lease {
	if !shared {
		t.writers++
	}
	if t.firstLease.tenure == nil {
		t.firstLease = Lease{tenure: t, parent: ctx, shared: shared}
		t.oneEntry[0] = &t.firstLease
		t.entries = t.oneEntry[:]
		return &t.firstLease
	}
	l := &Lease{tenure: t, parent: ctx, shared: shared, index: len(t.entries)}
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

package engine

import (
	"context"
	"errors"
	"slices"
	"time"
	"unique"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A poolKey is what callers must have in common to wait in one pool: then only the goroutine
// differs, and one may have the hold of another.
type poolKey struct {
	name string
	kind unique.Handle[poolKind]
}

// A poolKind is what they must have in common beside the name. Many pools are of one kind.
type poolKind struct {
	label   string
	kind    protocol.Kind
	shared  bool
	wanted  bool
	permits int64
	weight  int64
	ttl     time.Duration
}

// setPool sets the kind of the pools in which callers wait.
func (s *settings) setPool() {
	spec := &s.spec
	s.pool = unique.Make(poolKind{spec.Label, spec.Kind, spec.Shared, s.options.Wanted, spec.Permits, s.weight,
		s.options.TTL})
}

// key is that of the pool in which callers of the lock wait. Those of a lock of holds that may be
// retained wait with those of the lock that it was made of.
func (l *Lock) key() poolKey {
	if l.plain != nil {
		l = l.plain
	}
	return poolKey{l.name, l.pool}
}

// shares reports whether readers enter the holds of the pool together.
func (p *pool) shares() bool { return p.key.kind.Value().shared }

// A pool is the queue of this process's goroutines for one lock. The goroutine that finds no pool
// makes one and leads it: it asks the server for all of them. When the leader gets the hold, its
// lead ends:
//
//   - A mutex passes from goroutine to goroutine (Engine.settleHold in release.go). The pool has
//     no leader until the hold is yielded, lost or downgraded; then the first waiter leads.
//   - Readers join the hold (Engine.openToReaders in readers.go), for a slice of time. A reader
//     that comes later leads, beside the hold, and goroutines wait only for such a leader.
//   - Permits do not pass: the first waiter leads at once.
//
// A leader that gives up makes the first waiter lead. So while goroutines wait, one of them leads
// or one of this process holds. Where a leader or a hold goes, the code keeps that true before it
// unlocks the engine's mutex, which guards the fields. If nobody waits then, the pool leaves the
// engine's table.
type pool struct {
	key     poolKey
	leader  *attempt      // the attempt of the leader; nil: no goroutine asks
	hold    *hold         // that a goroutine may enter: that of readers, or one that is retained; else nil
	waiters []*poolWaiter // in the order in which they came
}

// A poolWaiter is a goroutine that waits in a pool. It never changes.
type poolWaiter struct {
	call     *call
	delivery chan delivery // gets one delivery; it has room for it, so that sending never blocks
}

// A delivery is what a goroutine gets from its pool without a request: a lease, or the lead. One of
// the two is nil.
type delivery struct {
	lease   *Lease
	attempt *attempt // with which it leads from now on
}

// push makes a waiter the last of the pool. The engine's mutex is held, as in all methods of pool.
func (p *pool) push(c *call) *poolWaiter {
	w := &poolWaiter{call: c, delivery: make(chan delivery, 1)}
	p.waiters = append(p.waiters, w)
	return w
}

// remove takes a waiter that gives up out of the queue. It returns false if pop took it out before:
// then a delivery is on its way to it.
func (p *pool) remove(w *poolWaiter) bool {
	i := slices.Index(p.waiters, w)
	if i < 0 {
		return false
	}
	p.waiters = slices.Delete(p.waiters, i, i+1)
	return true
}

// pop takes the first waiter out of the queue, and returns nil if there is none. The caller must
// deliver something to it.
func (p *pool) pop() *poolWaiter {
	if len(p.waiters) == 0 {
		return nil
	}
	w := p.waiters[0]
	p.waiters[0] = nil
	p.waiters = p.waiters[1:]
	return w
}

// tokenBlock is how many fencing tokens the next grant of a pool should reserve: many when
// goroutines wait, as each that the hold passes to needs one. Readers join a hold with the token
// that it has.
func (p *pool) tokenBlock() int64 {
	if len(p.waiters) == 0 || p.shares() {
		return 1
	}
	return passBlock
}

// deliver gives a waiter that was popped what it waits for. The engine's mutex is held. The effect
// runs right after the next Unlock, so that the waiter does not wake up into a locked mutex.
func (e *Engine) deliver(w *poolWaiter, d delivery) { e.mu.after(func() { w.delivery <- d }) }

// deliverLead makes a waiter that was popped the leader of its pool, with an attempt that becomes
// its own. The engine's mutex is held.
func (e *Engine) deliverLead(p *pool, w *poolWaiter, a *attempt) {
	p.leader, a.call = a, w.call
	e.deliver(w, delivery{attempt: a})
}

// dropPool takes a pool out of the table. After a Resize another pool may have its place there,
// which stays. The engine's mutex is held.
func (e *Engine) dropPool(p *pool) {
	if e.pools[p.key] == p {
		delete(e.pools, p.key)
	}
}

// acquirePooled takes the lock through the pool of its key: the goroutine joins a hold of readers,
// leads, or waits for a delivery.
func (l *Lock) acquirePooled(ctx context.Context, c *call) (*Lease, error) {
	entry := l.enterPool(ctx, c)
	switch entry.kind {
	case entryJoined:
		return entry.lease, nil
	case entryLeads:
		return l.lead(ctx, entry.pool, entry.attempt)
	case entryWaits:
		c.observeWait(Waiting)
		return l.awaitDelivery(ctx, entry.pool, entry.waiter)
	}
	return nil, notSentError(ctx)
}

// An entryKind is what became of a goroutine that came to a pool.
type entryKind int

const (
	entryRefused entryKind = iota // it would have had to wait, and its context was over
	entryJoined                   // it has a lease on the hold of the pool's readers
	entryLeads                    // it asks the server, by an attempt
	entryWaits                    // it waits for a delivery, as a waiter
)

// A poolEntry is a goroutine that came to a pool. It has what its kind says, and else nil.
type poolEntry struct {
	kind    entryKind
	pool    *pool
	lease   *Lease
	attempt *attempt
	waiter  *poolWaiter
}

// enterPool finds or makes the pool of a lock, and enters it.
func (l *Lock) enterPool(ctx context.Context, c *call) poolEntry {
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	key := l.key()
	p := e.pools[key]
	// A pool of readers may have a hold and no leader. Any other pool has a leader, or a hold that
	// passes to its waiters.
	leads := p == nil || (p.shares() && p.leader == nil)
	if p == nil {
		p = &pool{key: key}
		e.pools[key] = p
	}
	if p.hold != nil {
		if lease := p.join(ctx); lease != nil {
			return poolEntry{kind: entryJoined, pool: p, lease: lease}
		}
	}
	retained := p.hold != nil && !p.shares()
	switch {
	case leads || retained: // the attempt looks at ctx itself
		p.leader = l.newLead(c, 1)
		if retained {
			e.replaceRetained(p, p.leader)
		}
		return poolEntry{kind: entryLeads, pool: p, attempt: p.leader}
	case ctx.Err() != nil:
		return poolEntry{kind: entryRefused, pool: p}
	}
	if p.leader == nil {
		e.scheduleCheck()
	}
	w := p.push(c)
	if l.options.Wanted {
		if h := e.holdOfPool(p); h != nil {
			e.closeWanted(h)
		}
	}
	return poolEntry{kind: entryWaits, pool: p, waiter: w}
}

// awaitDelivery waits in a pool for a lease or for the lead.
func (l *Lock) awaitDelivery(ctx context.Context, p *pool, w *poolWaiter) (*Lease, error) {
	e := l.engine
	select {
	case d := <-w.delivery:
		if d.attempt != nil {
			return l.lead(ctx, p, d.attempt)
		}
		return d.lease, nil
	case <-e.closing:
		// A delivery that comes now is dropped: Close has ended its lease, or it is a lead, and
		// what the server keeps of that ends by itself.
		return nil, e.config.Closed
	case <-ctx.Done():
	}
	e.mu.Lock()
	ended := l.poolEndErrorLocked(ctx, p, w)
	removed := p.remove(w)
	e.mu.Unlock()
	if removed {
		return nil, ended
	}
	return nil, l.passDeliveryOn(ctx, p, <-w.delivery, ended)
}

// passDeliveryOn is for a delivery that came as ctx ended. If the goroutine dropped it, none would
// lead or hold, and all waiters of the pool would hang. So it leads, which passes the lead on at
// once as ctx is over, or releases the lease, which passes the hold on. The error is that of the
// lead, if another than the end of ctx, or ended.
func (l *Lock) passDeliveryOn(ctx context.Context, p *pool, d delivery, ended error) error {
	if d.attempt != nil {
		var err error
		d.lease, err = l.lead(ctx, p, d.attempt)
		if endedWait(err) {
			return ended // it tells how long this goroutine waited, and not an earlier leader
		}
		if err != nil {
			return err
		}
	}
	if err := d.lease.Release(); err != nil {
		l.engine.config.Logger.Warn("holdfast: giving back what came too late", "name", l.name, "error", err)
	}
	return ended
}

// poolEndErrorLocked is the error of a waiter whose context ended, with what its leader knows. The
// engine's mutex is held.
func (l *Lock) poolEndErrorLocked(ctx context.Context, p *pool, w *poolWaiter) *WaitFailure {
	ended := &WaitFailure{Kind: l.spec.Kind, Err: protocol.EndOf(ctx), Waited: time.Since(w.call.start), Answered: true}
	if a := p.leader; a != nil {
		ended.Answer, ended.Answered, ended.Failure = a.answer, a.answered, a.failure
		ended.holderContext = a.holderContext
	} else if h := l.engine.holdOfPool(p); h != nil { // no goroutine asks, as one of this process holds
		ended.Answer, ended.holderContext = h.asAnswer(), h.tenure.inlineLease.parent
	} else {
		ended.Answer.Status, ended.Answer.Holder.Label = protocol.Busy, p.key.kind.Value().label
	}
	return ended
}

// lead asks the server on behalf of the pool, until the leader holds or gives up.
func (l *Lock) lead(ctx context.Context, p *pool, a *attempt) (*Lease, error) {
	for {
		h, err := a.run(ctx)
		lease, err := l.finishLead(ctx, p, a, h, err)
		if lease != nil || err != nil {
			return lease, err
		}
	}
}

// finishLead ends the lead of an attempt that has run. It returns neither a lease nor an error if
// the leader should have joined a hold, and that ended meanwhile or ctx did. Then the attempt runs
// again.
func (l *Lock) finishLead(ctx context.Context, p *pool, a *attempt, h *hold, err error) (*Lease, error) {
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		p.leader = nil // from here on the hold passes on in the pool, or beginHold has the next one lead
		return l.beginHold(a.call, h, p)
	case errors.Is(err, errJoin):
		return p.leaderJoins(ctx, a), nil
	}
	e.passLead(p, a, err)
	return nil, err
}

// leaderJoins ends the lead of a reader that enters a hold of this process instead. It returns nil,
// and changes nothing, if the hold can no longer be joined. The waiters that were there when the
// hold was opened are in. A waiter that came since then was too late to enter it, and leads. The
// engine's mutex is held.
func (p *pool) leaderJoins(ctx context.Context, a *attempt) *Lease {
	lease := p.joinHold(ctx, a.opened)
	if lease == nil {
		return nil
	}
	lease.before = a.predecessor()
	p.leader = nil
	if w := p.pop(); w != nil {
		a.engine.deliverLead(p, w, a.lock.newLead(w.call, p.tokenBlock()))
	}
	if a.answered {
		// Even a server without a queue may remember the ticket. Only of a known attempt does
		// abandon free what the server has.
		a.to(attemptKnown)
	}
	a.abandon()
	return lease
}

// passLead makes the first waiter of a pool its leader after a leader failed. If only the caller of
// the leader gave up, the next leader goes on with its attempt, and so with its place in the
// server's queue. Otherwise the server refused the attempt or evicted it, or the engine is closed.
// The engine's mutex is held.
func (e *Engine) passLead(p *pool, a *attempt, err error) {
	w := p.pop()
	if w == nil {
		e.dropPool(p)
		a.abandon()
		return
	}
	next := a
	if evicted := errors.As(err, new(*protocol.Evicted)); evicted || !endedWait(err) {
		next = a.lock.newAttempt(w.call, p.tokenBlock()) // not of the pool's lock: a.lock knows the number of permits
		next.permitsAccepted = a.permitsAccepted
		a.abandon()
	}
	next.mailbox.messages.join = nil // that hold was opened before the new leader waited
	e.deliverLead(p, w, next)
}

// promoteNext takes a hold out of its pool, because it is lost or of no use to the others. If the
// pool is left without a leader and without a hold, the first waiter leads, with an attempt of its
// own. The engine's mutex is held.
func (e *Engine) promoteNext(h *hold) {
	p := h.pool
	h.pool = nil
	if p.hold == h { // for readers, p may have a younger one
		p.hold = nil
	}
	if p.leader != nil || p.hold != nil {
		return
	}
	w := p.pop()
	if w == nil {
		e.dropPool(p)
		return
	}
	lead := h.lock.newLead(w.call, p.tokenBlock())
	// The server granted h with this number of permits. If it refuses the number now, the name was
	// resized.
	lead.permitsAccepted = true
	e.deliverLead(p, w, lead)
}

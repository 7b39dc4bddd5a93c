package engine

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A poolKey tells which callers may follow one another on one hold, or share one: those for whom
// only the goroutine differs.
type poolKey struct {
	name, label string
	kind        protocol.Kind
	shared      bool
	permits     int64
	weight      int64
	ttl         time.Duration
}

func (l *Lock) poolKey() poolKey {
	return poolKey{l.spec.Name, l.spec.Label, l.spec.Kind, l.spec.Shared, l.spec.Permits, l.weight, l.options.TTL}
}

// A pool is the queue of this process's goroutines for one lock. While it exists, one goroutine
// leads, which means that it asks the server for all of them, or one holds. The goroutine that
// finds no pool makes one and leads it. A leader that gets the hold, or gives up, ends its lead:
// then the hold passes from goroutine to goroutine, or the first waiter leads. Where holds share,
// the others join the hold of the first, and goroutines wait for a leader only. The engine's mutex
// guards the fields.
type pool struct {
	key     poolKey
	leader  *attempt  // the attempt of the leader; nil: no goroutine asks
	hold    *hold     // of readers: the hold that others may join; else nil
	waiters list.List // of *poolWaiter, in the order in which they came
}

// A poolWaiter is a goroutine that waits in a pool.
type poolWaiter struct {
	ctx     context.Context
	since   time.Time
	handoff chan handoff  // holds one, so that sending never blocks
	place   *list.Element // nil: it is no longer in the queue
}

// A handoff is what a waiter of a pool gets: a lease, or the attempt with which it leads from now
// on.
type handoff struct {
	lease   *Lease
	attempt *attempt
}

// push makes a waiter the last of the pool.
func (p *pool) push(ctx context.Context) *poolWaiter {
	w := &poolWaiter{ctx: ctx, since: time.Now(), handoff: make(chan handoff, 1)}
	w.place = p.waiters.PushBack(w)
	return w
}

// remove takes a waiter out of the queue. It returns false if the waiter was out before: then a
// handoff is on its way to it.
func (p *pool) remove(w *poolWaiter) bool {
	if w.place == nil {
		return false
	}
	p.waiters.Remove(w.place)
	w.place = nil
	return true
}

// pop takes the first waiter out of the queue, and returns nil if there is none.
func (p *pool) pop() *poolWaiter {
	first := p.waiters.Front()
	if first == nil {
		return nil
	}
	w := first.Value.(*poolWaiter)
	p.remove(w)
	return w
}

// tokenBlock is how many tokens the next grant of a pool should reserve: many when goroutines wait.
func (p *pool) tokenBlock() int64 {
	if p.waiters.Len() == 0 || p.key.shared {
		return 1
	}
	return passBlock
}

// handOff gives a waiter that was popped what it waits for, once the engine's mutex is unlocked:
// the waiter does not wake up into a locked mutex. The mutex is held.
func (e *Engine) handOff(w *poolWaiter, h handoff) { e.mu.after(func() { w.handoff <- h }) }

// dropPool takes a pool out of the table, unless another one has its place there. The engine's
// mutex is held.
func (e *Engine) dropPool(p *pool) {
	if e.pools[p.key] == p {
		delete(e.pools, p.key)
	}
}

// acquirePooled takes the lock through the queue of this process: the goroutine joins a hold of
// readers, leads, or waits for a handoff.
func (l *Lock) acquirePooled(ctx context.Context) (*Lease, error) {
	e, key := l.engine, l.poolKey()
	e.mu.Lock()
	p := e.pools[key]
	leads := p == nil || p.key.shared && p.leader == nil
	if p == nil {
		p = &pool{key: key}
		e.pools[key] = p
	}
	if p.hold != nil {
		if lease := p.join(ctx); lease != nil {
			e.report(lease.tenure.hold.event(Passed, 0))
			e.mu.Unlock()
			return lease, nil
		}
	}
	if leads {
		p.leader = l.newAttempt(1)
		lead := p.leader
		e.mu.Unlock()
		return l.lead(ctx, p, lead)
	}
	if ctx.Err() != nil {
		e.mu.Unlock()
		return nil, &WaitEnded{Err: protocol.EndOf(ctx), Answered: true}
	}
	w := p.push(ctx)
	e.report(Event{Kind: Waiting, Name: l.spec.Name})
	e.mu.Unlock()
	return l.awaitHandoff(ctx, p, w)
}

// awaitHandoff waits in a pool for a lease or for the lead.
func (l *Lock) awaitHandoff(ctx context.Context, p *pool, w *poolWaiter) (*Lease, error) {
	e := l.engine
	select {
	case h := <-w.handoff:
		if h.attempt != nil {
			h.attempt.since = w.since
			return l.lead(ctx, p, h.attempt)
		}
		e.observe(h.lease.tenure.hold.event(Passed, time.Since(w.since)))
		return h.lease, nil
	case <-e.closing: // Close ends all holds: a handoff that comes now is of no use to anybody
		return nil, e.config.Closed
	case <-ctx.Done():
	}
	e.mu.Lock()
	ended := p.waitEnded(ctx, w)
	removed := p.remove(w)
	e.mu.Unlock()
	if removed {
		return nil, ended
	}
	// The handoff came as ctx ended. Without this goroutine the pool would stand still (trap 20),
	// so it finishes what it was given, and passes the hold on by releasing it.
	h := <-w.handoff
	if h.attempt != nil {
		var err error
		if h.lease, err = l.lead(ctx, p, h.attempt); err != nil {
			return nil, err
		}
	}
	if err := h.lease.Release(); err != nil {
		e.config.Logger.Warn("holdfast: giving back what came too late", "name", l.spec.Name, "error", err)
	}
	return nil, ended
}

// waitEnded is the error of a waiter whose context ended, with what its leader knows. The engine's
// mutex is held.
func (p *pool) waitEnded(ctx context.Context, w *poolWaiter) *WaitEnded {
	ended := &WaitEnded{Err: protocol.EndOf(ctx), Waited: time.Since(w.since), Answered: true}
	if a := p.leader; a != nil {
		ended.Answer, ended.Answered, ended.Failure = a.answer, a.answered, a.failure
	} else { // no goroutine asks, as one of this process holds
		ended.Answer.Holder.Label = p.key.label
	}
	return ended
}

// lead asks the server on behalf of the pool. A leader that gives up hands its attempt, and with it
// the place in the server's queue, to the next goroutine of the pool.
func (l *Lock) lead(ctx context.Context, p *pool, a *attempt) (*Lease, error) {
	e := l.engine
	for {
		h, err := a.run(ctx)
		e.mu.Lock()
		switch {
		case err == nil:
			p.leader = nil
			lease, err := l.firstLease(ctx, h, p)
			e.mu.Unlock()
			return lease, err
		case !errors.Is(err, errJoin):
			e.passLead(p, a, err)
			e.mu.Unlock()
			return nil, err
		}
		lease := p.joinHold(ctx, a.joinable)
		if lease == nil {
			e.mu.Unlock()
			continue // the hold ended meanwhile: ask on
		}
		p.leader = nil
		if a.answered {
			a.to(attemptQueued) // without a queue, too, a server may remember the waiter
		}
		a.abandon()
		e.report(lease.tenure.hold.event(Passed, time.Since(a.since)))
		e.mu.Unlock()
		return lease, nil
	}
}

// passLead makes the next goroutine of a pool its leader after a leader failed. The engine's mutex
// is held.
func (e *Engine) passLead(p *pool, a *attempt, err error) {
	w := p.pop()
	if w == nil {
		e.dropPool(p)
		a.abandon()
		return
	}
	next := a // only the caller gave up: the next one goes on with its place in the server's queue
	if ended := (*WaitEnded)(nil); !errors.As(err, &ended) {
		next = a.lock.newAttempt(p.tokenBlock()) // the server refused a, whose lock knows the number of permits
		next.permitsAccepted = a.permitsAccepted
		a.abandon()
	}
	next.mailbox.messages.join = nil // it was a hold to join for the leader before
	p.leader = next
	e.handOff(w, handoff{attempt: next})
}

// promoteNext takes a hold out of its pool, because it is lost or of no use to the others. The
// first waiter becomes the leader if the pool is left without a leader and without a hold. The
// engine's mutex is held.
func (e *Engine) promoteNext(h *hold) {
	p := h.pool
	h.pool = nil
	if p.hold == h {
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
	lead := h.lock.newAttempt(p.tokenBlock())
	lead.permitsAccepted = true
	p.leader = lead
	e.handOff(w, handoff{attempt: lead})
}

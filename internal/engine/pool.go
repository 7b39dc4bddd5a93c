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

// A pool is the queue of this process's goroutines for one lock. While it exists, one of them leads
// (it asks the server for all), or one holds. Where holds share, goroutines wait for a leader only.
// Its fields are guarded by the engine's mutex.
type pool struct {
	key     poolKey
	leader  *attempt  // nil: no goroutine asks
	hold    *hold     // of readers: the one that they join
	waiters list.List // of *poolWaiter
}

// A poolWaiter is a goroutine in a pool.
type poolWaiter struct {
	ctx     context.Context
	since   time.Time
	handoff chan handoff  // of one
	place   *list.Element // nil: it was taken out
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

// remove takes a waiter out. False: it was out before.
func (p *pool) remove(w *poolWaiter) bool {
	if w.place == nil {
		return false
	}
	p.waiters.Remove(w.place)
	w.place = nil
	return true
}

// pop takes the first waiter out. Nil: none waits.
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

// handOff gives a waiter what it waits for. The engine's mutex is held.
func (e *Engine) handOff(w *poolWaiter, h handoff) { e.mu.after(func() { w.handoff <- h }) }

// dropPool takes a pool out of the table, unless another one has its place there. The engine's
// mutex is held.
func (e *Engine) dropPool(p *pool) {
	if e.pools[p.key] == p {
		delete(e.pools, p.key)
	}
}

// acquirePooled takes the lock through the queue of this process.
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

// awaitHandoff waits in a pool.
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
	case <-e.closing:
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
	// The handoff came at this very moment: it goes on to the next waiter (trap 20).
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
	} else { // no goroutine asks, because one of the pool holds
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
			continue // it could be joined no more
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
	var ended *WaitEnded
	p.leader = a
	if !errors.As(err, &ended) {
		p.leader = a.lock.newAttempt(p.tokenBlock()) // with the number of permits that the pool knows
		p.leader.permitsAccepted = a.permitsAccepted
		a.abandon()
	}
	p.leader.mailbox.messages.join = nil // the new leader came later
	e.handOff(w, handoff{attempt: p.leader})
}

// promoteNext takes a hold out of its pool, as it is lost or nothing for the others, and makes the
// next goroutine the leader if there is none. The engine's mutex is held.
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

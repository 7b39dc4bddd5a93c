package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A poolKey tells which callers may follow one another on one hold, or share one: those for whom only the goroutine differs.
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

// A pool is the queue of this process's goroutines for one lock. While it exists, one of them leads (it asks the
// server for all), or one holds. Where holds share, goroutines wait for a leader only. Guarded by the engine's mutex.
type pool struct {
	key        poolKey
	leader     *attempt // who asks, if anybody does
	hold       *hold    // of readers: the one that they join
	head, tail *waiter
}

// A waiter is a goroutine in a pool.
type waiter struct {
	ctx        context.Context
	since      time.Time
	handoff    chan handoff // of one
	next, prev *waiter
	queued     bool
}

// What a waiter is handed: a lease, or the attempt with which it leads from now on.
type handoff struct {
	lease   *Lease
	attempt *attempt
}

func (p *pool) push(w *waiter) {
	w.queued, w.prev = true, p.tail
	if p.tail == nil {
		p.head = w
	} else {
		p.tail.next = w
	}
	p.tail = w
}

func (p *pool) remove(w *waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev == nil {
		p.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		p.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued, w.next, w.prev = false, nil, nil
	return true
}

func (p *pool) pop() *waiter {
	w := p.head
	if w != nil {
		p.remove(w)
	}
	return w
}

// tokenBlock is how many tokens the next grant of a pool should bring: many when there is somebody to pass them to.
func (p *pool) tokenBlock() int64 {
	if p.head == nil || p.key.shared {
		return 1
	}
	return passBlock
}

// pool takes the lock through the queue of this process.
func (l *Lock) pool(ctx context.Context) (*Lease, error) {
	e, key := l.engine, l.poolKey()
	e.mu.Lock()
	p := e.pools[key]
	leads := p == nil || p.key.shared && p.leader == nil
	if p == nil {
		p = &pool{key: key}
		e.pools[key] = p
	} else if lease := p.join(ctx); lease != nil {
		e.mu.Unlock()
		e.observe(lease.tenure.hold.event(Passed, 0))
		return lease, nil
	}
	if leads {
		lead := l.newAttempt(1)
		p.leader = lead
		e.mu.Unlock()
		return l.lead(ctx, p, lead)
	}
	if ctx.Err() != nil {
		e.mu.Unlock()
		return nil, &WaitEnded{Err: protocol.EndOf(ctx), Answered: true}
	}
	w := &waiter{ctx: ctx, since: time.Now(), handoff: make(chan handoff, 1)}
	p.push(w)
	e.mu.Unlock()
	e.observe(Event{Kind: Waiting, Name: l.spec.Name})

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
	ended := &WaitEnded{Err: protocol.EndOf(ctx), Waited: time.Since(w.since), Answered: true}
	if a := p.leader; a != nil {
		ended.Answer, ended.Answered, ended.Failure = a.answer, a.answered, a.failure
	} else { // nobody asks because one of the pool holds
		ended.Answer.Holder.Label = p.key.label
	}
	if p.remove(w) {
		e.mu.Unlock()
		return nil, ended
	}
	e.mu.Unlock()
	// Handed over at this very moment: it goes on to the next (trap 20).
	switch h := <-w.handoff; {
	case h.attempt != nil:
		_, err := l.lead(ctx, p, h.attempt)
		if err == nil {
			break
		}
		return nil, err
	case h.lease != nil:
		if err := h.lease.Release(); err != nil {
			e.config.Logger.Warn("holdfast: giving back what came too late", "name", l.spec.Name, "error", err)
		}
	}
	return nil, ended
}

// lead asks the server on behalf of the pool. A leader that gives up hands its attempt, and with it the place in the
// server's line, to the next of the pool.
func (l *Lock) lead(ctx context.Context, p *pool, a *attempt) (*Lease, error) {
	e := l.engine
	h, err := a.run(ctx)
	e.mu.Lock()
	for errors.Is(err, errJoin) {
		if lease := p.joinHold(ctx, a.joinable); lease != nil {
			p.leader = nil
			e.mu.Unlock()
			a.inLine = a.inLine || a.answered // also where there is no line, somebody may remember who waits
			a.abandon()
			e.observe(lease.tenure.hold.event(Passed, time.Since(a.since)))
			return lease, nil
		}
		e.mu.Unlock()
		h, err = a.run(ctx)
		e.mu.Lock()
	}
	if err == nil {
		p.leader = nil
		if e.closed { // closed meanwhile
			e.mu.Unlock()
			return nil, e.config.Closed
		}
		h.pool = p
		lease := h.beginTenure(ctx)
		next := func() {}
		switch {
		case h.over || l.spec.Kind == protocol.Semaphore: // lost before it began, or none of the others' business
			next = e.promoteNext(h)
		case l.joinable():
			next = e.openToReaders(h, p.key)
		}
		e.mu.Unlock()
		next()
		e.observe(h.event(Granted, h.heldSince.Sub(a.since)))
		return lease, nil
	}
	w := p.pop()
	if w == nil {
		if e.pools[p.key] == p {
			delete(e.pools, p.key)
		}
		e.mu.Unlock()
		a.abandon()
		return nil, err
	}
	var ended *WaitEnded
	next := a
	if !errors.As(err, &ended) {
		next = a.lock.newAttempt(p.tokenBlock()) // with the number of permits that the pool knows
		next.permitsAccepted = a.permitsAccepted
	}
	next.messages.join = nil // who leads now came later
	p.leader = next
	e.mu.Unlock()
	if next != a {
		a.abandon()
	}
	w.handoff <- handoff{attempt: next}
	return nil, err
}

// promoteNext takes a hold out of its pool, as it is lost or nothing for the others, and finds the next leader if there is
// none. It is called with the mutex held and returns what to do without it.
func (e *Engine) promoteNext(h *hold) func() {
	p := h.pool
	h.pool = nil
	if p.hold == h {
		p.hold = nil
	}
	if p.leader != nil || p.hold != nil {
		return func() {}
	}
	w := p.pop()
	if w == nil {
		if e.pools[p.key] == p {
			delete(e.pools, p.key)
		}
		return func() {}
	}
	lead := h.lock.newAttempt(p.tokenBlock())
	lead.permitsAccepted = true
	p.leader = lead
	return func() { w.handoff <- handoff{attempt: lead} }
}

// releaseHold ends the last tenure of a hold: it goes to the next of this process, or is yielded with the next one asking in
// the same request, or goes back to the server. It is called with the mutex held and returns what to do without it.
func (e *Engine) releaseHold(h *hold) (next func() error) {
	took := time.Since(h.tenure.since)
	if p := h.pool; p != nil && p.key.shared {
		e.promoteNext(h) // nobody waits without a leader
	} else if p != nil {
		if w := p.pop(); w != nil {
			event := h.event(Released, took)
			if h.mayPassOn(time.Now()) {
				h.token++
				lease := h.beginTenure(w.ctx)
				return func() error {
					w.handoff <- handoff{lease: lease}
					e.observe(event)
					return nil
				}
			}
			h.over = true
			e.watchdog.remove(h)
			p.leader = h.lock.newAttempt(passBlock)
			p.leader.release = &h.ticket
			e.cleanupLateAsk(h)
			lead := p.leader
			return func() error {
				w.handoff <- handoff{attempt: lead}
				e.observe(event)
				return nil
			}
		}
		if e.pools[p.key] == p {
			delete(e.pools, p.key)
		}
	}
	h.over = true
	e.watchdog.remove(h)
	e.busy.Add(1)
	return func() error {
		defer e.busy.Done()
		err := e.free(h, time.Now().Add(e.config.ReleaseTimeout))
		event := h.event(Released, took)
		event.Err = err
		e.observe(event)
		return err
	}
}

// mayPassOn tells whether a hold may go on to the next goroutine without asking the server: within the slice, with a
// token reserved, unless another process may resume it, and with trust left for the next holder. Tokens must not run ahead of the server's
// microseconds, or those given out after a loss of all data could be smaller.
func (h *hold) mayPassOn(now time.Time) bool {
	held := now.Sub(h.heldSince)
	if h.ownerExposed || held >= passFor || h.end().Sub(now) < claim(h.lock.options.TTL)/2 {
		return false
	}
	if !h.lock.engine.features.Tokens {
		return true
	}
	const ahead = 100 // tokens: less time than losing all data and granting anew takes
	return h.token < h.lastToken && h.token-h.grantToken < held.Microseconds()+ahead
}

package engine

import (
	"context"
	"errors"
	"time"
)

// errJoin says to a leader that a hold of this process may be joined.
var errJoin = errors.New("there is a hold to join")

// join enters the hold of a pool without a request: that of readers while it is young, or one that
// is retained. Nil: there is none. The engine's mutex is held.
func (p *pool) join(ctx context.Context) *Lease {
	if p.shares() || p.hold == nil {
		return p.joinHold(ctx, nil)
	}
	return p.enterRetained(ctx)
}

// joinHold is join for a leader that waited when a hold was opened to readers. It enters that hold
// however late it learns of it: it may have been asking the server meanwhile. The engine's mutex is
// held.
func (p *pool) joinHold(ctx context.Context, opened *hold) *Lease {
	h, now := p.hold, time.Now()
	young := h != nil && (h.joinableFor == 0 || now.Sub(h.heldSince) < h.joinableFor)
	if h == nil || !h.isLive() || h.tenure.lossCause != nil || ctx.Err() != nil || h != opened && !young ||
		h.end().Sub(now) < claim(h.lock.options.TTL)/2 || isPast(h.end(), now) {
		return nil
	}
	if h.to(holdHeld) { // it was retained
		h.lock.engine.holds.update(h)
	}
	return h.tenure.addLease(ctx, true)
}

// tryHere enters a hold of this process without a request, if there is one that its readers share
// and that is young, or one that is retained. A *BusyError: a goroutine of this process uses a hold
// that would be retained.
func (l *Lock) tryHere(ctx context.Context) (*Lease, error) {
	if !l.joinable && l.options.Retain == 0 {
		return nil, nil
	}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	p := l.engine.pools[l.key()]
	if p == nil {
		return nil, nil
	}
	if h := l.holdHere(p); h != nil {
		return nil, &BusyError{Kind: l.spec.Kind, Answer: h.asAnswer()}
	}
	return p.join(ctx), nil
}

// openToReaders makes a hold the one that readers of this process join, for a slice from now. All
// waiters of the pool enter, and a leader that waits is told to. The engine's mutex is held.
func (e *Engine) openToReaders(h *hold, key poolKey) {
	p := e.pools[key]
	if p == nil {
		p = &pool{key: key}
		e.pools[key] = p
	}
	p.hold, h.pool, h.joinableFor = h, p, time.Since(h.heldSince)+passFor
	if h.isRetaining() {
		h.joinableFor = 0
	}
	if a := p.leader; a != nil {
		a.mailbox.messages.join = h
		a.mailbox.wake()
	}
	for w := p.pop(); w != nil; w = p.pop() {
		lease := h.tenure.addLease(w.call.ctx, true)
		lease.before = h.before // they waited for the same holder
		e.deliver(w, delivery{lease: lease})
	}
}

package engine

import (
	"context"
	"errors"
	"time"
)

// errJoin says to a leader that a hold of this process may be joined.
var errJoin = errors.New("there is a hold to join")

// join enters the hold of a pool of readers while it is young. Nil: it is not young, or there is
// none. The engine's mutex is held.
func (p *pool) join(ctx context.Context) *Lease { return p.joinHold(ctx, nil) }

// joinHold is join for a leader that waited when a hold was opened to readers. It enters that hold
// however late it learns of it: it may have been asking the server meanwhile. The engine's mutex is
// held.
func (p *pool) joinHold(ctx context.Context, opened *hold) *Lease {
	h, now := p.hold, time.Now()
	if h == nil || !h.isLive() || h.tenure.lossCause != nil || ctx.Err() != nil || h != opened &&
		!now.Before(h.joinableUntil) ||
		h.end().Sub(now) < claim(h.lock.options.TTL)/2 || isPast(h.end(), now) {
		return nil
	}
	return h.tenure.addLease(ctx, true)
}

// join enters the hold that readers of this process share, without a request, if there is one that
// is young.
func (l *Lock) join(ctx context.Context) *Lease {
	if !l.joinable {
		return nil
	}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if p := l.engine.pools[l.key]; p != nil {
		return p.join(ctx)
	}
	return nil
}

// openToReaders makes a hold the one that readers of this process join, for a slice from now. All
// waiters of the pool enter, and a leader that waits is told to. The engine's mutex is held.
func (e *Engine) openToReaders(h *hold, key poolKey) {
	p := e.pools[key]
	if p == nil {
		p = &pool{key: key}
		e.pools[key] = p
	}
	p.hold, h.pool, h.joinableUntil = h, p, time.Now().Add(passFor)
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

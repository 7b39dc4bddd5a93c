package engine

import (
	"context"
	"errors"
	"time"
)

// errJoin says to a leader that a hold of this process may be joined.
var errJoin = errors.New("there is a hold to join")

// join enters the hold of a pool of readers while it is young. Nil: it is not, or there is none. It is called with the mutex
// held.
func (p *pool) join(ctx context.Context) *Lease { return p.joinHold(ctx, nil) }

// joinHold is join for one who may have been waiting when a hold was gathered: that one it enters when it learns of it, however
// late. A leader may be asking the server meanwhile.
func (p *pool) joinHold(ctx context.Context, gathered *hold) *Lease {
	h, now := p.hold, time.Now()
	if h == nil || h.over || h.tenure.lossCause != nil || ctx.Err() != nil || h != gathered && !now.Before(h.joinableUntil) ||
		h.end().Sub(now) < claim(h.lock.options.TTL)/2 || past(h.end(), now) {
		return nil
	}
	return h.tenure.addLease(ctx, true)
}

// join enters the hold that readers of this process share, without a request, if there is one that is young.
func (l *Lock) join(ctx context.Context) *Lease {
	if !l.joinable() {
		return nil
	}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if p := l.engine.pools[l.poolKey()]; p != nil {
		return p.join(ctx)
	}
	return nil
}

// openToReaders makes a hold the one that readers of this process join, for a slice from now. All who wait enter; a leader that
// waits is told to. It is called with the mutex held and returns what to do without it.
func (e *Engine) openToReaders(h *hold, key poolKey) func() {
	p := e.pools[key]
	if p == nil {
		p = &pool{key: key}
		e.pools[key] = p
	}
	p.hold, h.pool, h.joinableUntil = h, p, time.Now().Add(passFor)
	if a := p.leader; a != nil {
		a.messages.join = h
		a.wake()
	}
	var in []*waiter
	var leases []*Lease
	for w := p.pop(); w != nil; w = p.pop() {
		in, leases = append(in, w), append(leases, h.tenure.addLease(w.ctx, true))
	}
	return func() {
		for i, w := range in {
			w.handoff <- handoff{lease: leases[i]}
		}
	}
}

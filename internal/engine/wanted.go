package engine

import (
	"context"
	"slices"
)

// Wanted returns a channel that is closed once another caller wants the name of the lease. Messages
// tell of other processes: those that ask, if the lock says Wanted, and the callers of Tell. The
// channel is nil once the lease has ended.
func (l *Lease) Wanted() <-chan struct{} { return l.engine().wantedChannel(l) }

// Wanted is closed once another caller wants any of the names.
func (g *GroupLease) Wanted() <-chan struct{} { return g.engine().wantedChannel(g.parts...) }

// wantedChannel is the channel of a lease, which may have parts.
func (e *Engine) wantedChannel(parts ...*Lease) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.wanted[parts[0]]; c != nil {
		return c
	}
	if e.closed || slices.ContainsFunc(parts, func(l *Lease) bool { return l.released || l.tenure.lossCause != nil }) {
		return nil
	}
	c, wanted := make(chan struct{}), false
	for _, l := range parts {
		h := l.tenure.hold
		e.wanted[l], h.isTold = c, true
		wanted = wanted || h.wanted || h.lock.options.Wanted && h.pool != nil && len(h.pool.waiters) > 0
		e.hearInBackground(h, false)
	}
	if wanted {
		close(c)
	}
	return c
}

// closeWanted tells the holders that have a hold. The engine's mutex is held.
func (e *Engine) closeWanted(h *hold) {
	if h.tenure == nil {
		return
	}
	for _, l := range h.tenure.entries {
		c := e.wanted[l]
		select {
		case <-c: // of a group, or told before
		default:
			if c != nil {
				close(c)
			}
		}
	}
}

// noteWanted notes that another process wants a hold. The engine's mutex is held.
func (e *Engine) noteWanted(h *hold) {
	h.wanted = true
	e.closeWanted(h)
}

// hearInBackground makes messages about a hold come. If look is set, the server is asked whether
// others wait already. The engine's mutex is held.
func (e *Engine) hearInBackground(h *hold, look bool) {
	if e.closed {
		return
	}
	e.busy.Add(1)
	e.mu.after(func() { go e.hearWanted(h, look) })
}

func (e *Engine) hearWanted(h *hold, look bool) {
	defer e.busy.Done()
	e.subscription.addWaiter() // until the hold keeps it open
	defer e.subscription.removeWaiter()
	ctx, cancel := context.WithTimeout(context.Background(), listenTimeout)
	defer cancel()
	if _, err := e.subscription.ensureSubscribed(ctx, h.lock.resource()); err != nil || !look {
		return // the next renewal subscribes
	}
	standing, err := h.lock.resource().Look(ctx, nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && standing.Waiters > 0 && h.isLive() {
		e.noteWanted(h)
	}
}

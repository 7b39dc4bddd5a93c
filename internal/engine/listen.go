package engine

import (
	"context"
	"time"
)

// A holdListener makes messages come about the holds that goroutines of this process wait for. No
// goroutine of such a pool asks the server, so none of them subscribes. The engine's mutex guards
// it.
//
// A hold that passes from goroutine to goroutine is soon over, and costs none of this. So the
// listener looks from time to time, with one timer, while such goroutines wait.
type holdListener struct {
	timer   *time.Timer // nil: never set
	armed   bool        // it looks once the timer fires
	counted bool        // it counts among the waiters of the subscription, which stays open
}

// listenSoon has the listener look soon. The engine's mutex is held.
func (e *Engine) listenSoon() {
	l := &e.holdListener
	if l.armed || e.closed {
		return
	}
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(listenEvery, e.listenForHolds)
	} else {
		l.timer.Reset(listenEvery)
	}
}

// listenForHolds looks which holds have lasted for a while and have goroutines waiting for them.
func (e *Engine) listenForHolds() {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.holdListener
	l.armed = false
	var lasting []*hold
	for _, h := range e.holds.entries {
		if p := h.pool; p == nil || p.waiters.Len() == 0 {
			continue
		}
		e.listenSoon()
		if time.Since(h.heldSince) >= listenEvery {
			lasting = append(lasting, h)
		}
	}
	if counts := l.armed && (l.counted || lasting != nil); counts != l.counted {
		l.counted = counts
		if counts {
			e.subscription.addWaiter()
		} else {
			e.subscription.removeWaiter()
		}
	}
	if lasting != nil && !e.closed && !e.subscription.recentlyFailed() {
		e.busy.Add(1)
		e.mu.after(func() { go e.listenFor(lasting) })
	}
}

// listenFor makes messages about holds come. What happened to a hold before they did is asked for.
func (e *Engine) listenFor(holds []*hold) {
	defer e.busy.Done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, h := range holds {
		since, err := e.subscription.ensureSubscribed(ctx, h.lock.resource)
		if err != nil || since.IsZero() {
			return // the next renewal tells, or the next look listens
		}
		e.mu.Lock()
		if !since.Equal(h.heardSince) {
			h.heardSince = since
			e.queryInBackground(h)
		}
		e.mu.Unlock()
	}
}

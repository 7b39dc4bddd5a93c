package engine

import (
	"context"
	"time"
)

// listenTimeout bounds how long a subscription to the names of holds may take.
const listenTimeout = time.Second

// A holdListener subscribes on behalf of goroutines that wait in this process for a hold of this
// process. They ask the server nothing, so without it none of them would hear that an operator
// broke the hold. A subscription costs requests, and most holds pass on within milliseconds. So it
// is there only for holds that have lasted for checkEvery. The engine's mutex guards it.
type holdListener struct {
	timer   *time.Timer // nil: never set
	armed   bool        // the timer runs, and the holds are checked once it fires
	counted bool        // it counts among the waiters of the subscription, which stays open
}

// scheduleCheck has the holds checked soon. The engine's mutex is held.
func (e *Engine) scheduleCheck() {
	l := &e.holdListener
	if l.armed || e.closed {
		return
	}
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(checkEvery, e.checkHolds)
	} else {
		l.timer.Reset(checkEvery)
	}
}

// checkHolds looks for holds that have lasted for a while and have goroutines waiting for them.
// While any goroutine waits for a hold, it is called again and again.
func (e *Engine) checkHolds() {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.holdListener
	l.armed = false
	waiting := false
	var lasting []*hold
	for _, h := range e.holds.entries {
		if h.pool == nil || len(h.pool.waiters) == 0 {
			continue
		}
		waiting = true
		if time.Since(h.heldSince) >= checkEvery {
			lasting = append(lasting, h)
		}
	}
	if waiting {
		e.scheduleCheck()
	}
	e.countListener(waiting && !e.closed && (l.counted || len(lasting) > 0))
	if len(lasting) > 0 && !e.closed && !e.subscription.recentlyFailed() {
		e.busy.Add(1)
		e.mu.after(func() { go e.subscribeTo(lasting) })
	}
}

// countListener makes the listener one of the waiters of the subscription, or no longer one. The
// engine's mutex is held.
func (e *Engine) countListener(wanted bool) {
	l := &e.holdListener
	if wanted == l.counted {
		return
	}
	l.counted = wanted
	if wanted {
		e.subscription.addWaiter()
	} else {
		e.subscription.removeWaiter()
	}
}

// subscribeTo subscribes to the names of holds. A Break before the subscription sent no message, so
// the server is asked once for each hold.
func (e *Engine) subscribeTo(holds []*hold) {
	defer e.busy.Done()
	ctx, cancel := context.WithTimeout(context.Background(), listenTimeout)
	defer cancel()
	for _, h := range holds {
		since, err := e.subscription.ensureSubscribed(ctx, h.lock.resource())
		if err != nil || since.IsZero() {
			return // the next renewal tells, or the next check subscribes
		}
		e.mu.Lock()
		if !since.Equal(h.heardSince) {
			h.change().heardSince = since
			e.queryInBackground(h)
		}
		e.mu.Unlock()
	}
}

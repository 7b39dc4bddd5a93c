package engine

import "time"

// lose ends a hold that is not ours any more, or that this process cannot be sure of. The contexts
// of its leases end before anything else that it queues. The engine's mutex is held.
func (e *Engine) lose(h *hold, why Why) {
	next := holdLost
	if why == Gone || why == Foreign { // the server has nothing to give back
		next = holdCleared
	}
	unused := h.state == holdRetained
	if !h.to(next) {
		return
	}
	e.holds.remove(h)
	lost := Lost{Name: h.lock.name, Token: h.token, Why: why, By: h.brokenBy, Err: h.failure}
	if why == Expired {
		if h.noteLate(time.Now()); h.late >= h.lock.timeout {
			lost.Late = h.late
		}
	}
	h.change().lossCause = e.config.Cause(lost)
	e.endTenure(h.tenure, h.lossCause)
	if h.pool != nil {
		e.promoteNext(h)
	}
	e.queueEnds(h.tenure, h.lossCause)
	if unused { // no holder is to release it
		e.scheduleCleanup(h)
	}
}

// expireIfPast ends a hold whose trust is over by the clocks, before the watchdog notices. The
// engine's mutex is held.
func (e *Engine) expireIfPast(h *hold, now time.Time) {
	if h.isLive() && isPast(h.end(), now) {
		e.lose(h, h.lossReason())
	}
}

// lossReason tells how a hold whose trust is over was lost.
func (h *hold) lossReason() Why {
	if !h.maxHoldEnd.IsZero() && !h.maxHoldEnd.After(h.trustEnd) {
		return MaxHold
	}
	return Expired
}

// endCause is why a hold is over: the cause of its loss, or that it was given back. The engine's
// mutex is held.
func (h *hold) endCause() error {
	if h.lossCause != nil {
		return h.lossCause
	}
	return ErrNotHeld
}

// endTenure ends the contexts of a tenure's leases. The engine's mutex is held. A tenure may be
// nil.
func (e *Engine) endTenure(t *localTenure, cause error) {
	if t == nil || t.lossCause != nil {
		return
	}
	t.lossCause = cause
	for _, l := range t.entries {
		delete(e.wanted, l)
		if l.cancel != nil {
			e.mu.after(func() { l.cancel(cause) })
		}
	}
}

// noteStopped notes that the code of a lost lease has stopped: the lease was released. With the
// last lease of the hold, what the server may keep of it is given back. So nobody is let in before,
// and none need wait for the end of the hold after. The engine's mutex is held.
func (e *Engine) noteStopped(l *Lease) {
	if t := l.tenure; !l.stopped {
		l.stopped = true
		t.stopped++
		if int(t.stopped) == len(t.entries) {
			e.scheduleCleanup(t.hold)
		}
	}
}

// scheduleCleanup gives back, in the background, what the server may keep of a hold that was lost.
// The engine's mutex is held.
func (e *Engine) scheduleCleanup(h *hold) {
	if e.closed || h.isLive() || !h.to(holdCleared) {
		return
	}
	until := time.Now().Add(h.lock.grantTTL)
	for _, mode := range h.serverModes().all() {
		e.cleanup(mode, h.freeRequest(), until, h.mayApplyUntil)
	}
}

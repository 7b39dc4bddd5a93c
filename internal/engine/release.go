package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// settleHold decides where a hold goes whose present tenure is over. True: the hold goes to the
// next goroutine of its pool, or is retained, or is yielded: the next goroutine gives it back with
// the request in which it asks. False: the caller must free it, and call e.busy.Done then. The
// engine's mutex is held.
func (e *Engine) settleHold(h *hold) bool {
	p := h.pool
	if p != nil && p.shares() {
		if e.retain(h) {
			return true
		}
		e.promoteNext(h) // no reader waits without a leader
	} else if p != nil {
		if w := p.pop(); w != nil {
			if h.mayPassOn(time.Now()) {
				before := h.predecessor()
				h.token++
				lease := h.beginTenure(w.call.ctx)
				lease.before = before
				e.deliver(w, delivery{lease: lease})
			} else {
				h.to(holdReleasing)
				e.holds.remove(h)
				lead := h.lock.newLead(w.call, passBlock)
				lead.release = &h.ticket
				// until another answer comes
				lead.answer, lead.answered, lead.holderContext = h.asAnswer(), true, h.tenure.inlineLease.parent
				e.cleanupLateAsk(h)
				e.deliverLead(p, w, lead)
			}
			return true
		}
		if e.retain(h) {
			return true
		}
		e.dropPool(p)
	}
	h.to(holdReleasing)
	e.holds.remove(h)
	e.busy.Add(1)
	return false
}

// mayPassOn reports whether a hold may go on to the next goroutine without asking the server: for a
// short time, or while no other process asks for one that is retained, with a token reserved,
// unless others name its ticket, and with trust left for the next holder. Tokens must not run ahead
// of the server's microseconds: otherwise those given out after a loss of all data could be
// smaller.
func (h *hold) mayPassOn(now time.Time) bool {
	held := now.Sub(h.heldSince)
	if h.ticketNamed || held >= passFor && !h.isRetaining() || h.end().Sub(now) < claim(h.lock.options.TTL)/2 {
		return false
	}
	const ahead = 100 // tokens: less time than losing all data and granting anew takes
	return h.token < h.lastToken && h.token-h.grantToken < held.Microseconds()+ahead
}

// free gives a hold back at the server. It tries again until a moment or until trust ends. A hold
// that is not there any more is lost. If an earlier try may have been what removed it, that is not
// known: ErrGoneLater. Lost: the error is the cause of that loss.
func (e *Engine) free(h *hold, until time.Time) (lost bool, err error) {
	until, modes, request := e.awaitRenewal(h, until)
	limit := h.lock.timeout
	for unknown := false; ; {
		removed, err := freeModes(deadline{context.Background(), earlier(time.Now().Add(limit), until)}, modes, request)
		var failure *protocol.Failure
		if !errors.As(err, &failure) {
			cause := e.lossAfterFree(h, removed || unknown, err)
			if err == nil && !removed && unknown {
				return false, &UncertainError{Err: ErrGoneLater}
			}
			return cause != nil, cause
		}
		unknown = unknown || failure.Unknown
		err = failure.OrUnknown(unknown)
		if !failure.MustRepeat() {
			return false, err
		}
		if pause := jitter(limit / 10); time.Now().Add(pause).Before(until) {
			time.Sleep(pause)
			continue
		}
		e.mu.Lock()
		for _, mode := range modes.all() {
			e.cleanup(mode, request, time.Now().Add(h.lock.options.TTL), h.mayApplyUntil)
		}
		e.mu.Unlock()
		return false, &UncertainError{Err: err}
	}
}

// awaitRenewal waits for the renewal under way, which must not outlive the release. It returns
// until when the hold may be freed, and what it may be at the server.
func (e *Engine) awaitRenewal(h *hold, until time.Time) (time.Time, serverModes, protocol.FreeRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	until = earlier(until, h.trustEnd)
	if renewing := h.renewing; renewing != nil {
		e.mu.Unlock()
		timer := protocol.NewTimer(time.Until(until))
		select {
		case <-renewing:
		case <-timer.C:
		}
		timer.Stop()
		e.mu.Lock()
	}
	return until, h.serverModes(), h.freeRequest()
}

// freeModes frees what a hold may be at the server, up to the first that was there.
func freeModes(ctx context.Context, modes serverModes, request protocol.FreeRequest) (removed bool, err error) {
	for _, mode := range modes.all() {
		if removed, err = mode.resource().Free(ctx, request); removed || err != nil {
			break
		}
	}
	return removed, err
}

// lossAfterFree judges the answer to a free. The error is the cause of a loss.
func (e *Engine) lossAfterFree(h *hold, removed bool, err error) error {
	if err == nil && removed {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cleanupLateAsk(h)
		return nil
	}
	lost := Lost{Name: h.lock.name, Token: h.token, Why: Gone}
	var broken *protocol.Broken
	if errors.As(err, &broken) {
		lost.Why, lost.By = Broken, broken.By
	} else if err != nil { // the key is another's now
		lost.Why, lost.Err = Foreign, err
	}
	return e.config.Cause(lost)
}

// freeRequest gives a hold back that was used.
func (h *hold) freeRequest() protocol.FreeRequest {
	request := protocol.FreeRequest{Ticket: h.ticket, Next: h.successor}
	if o := h.lock.options; o.MinHold > 0 {
		request.Keep = h.grantedAt + o.MinHold.Microseconds()
	}
	return request
}

// cleanupLateAsk looks after a hold that was given back while an earlier request of its ticket may
// still arrive and win it again. The engine's mutex is held.
func (e *Engine) cleanupLateAsk(h *hold) {
	if time.Now().Before(h.mayApplyUntil) {
		for _, mode := range h.serverModes().all() {
			free := protocol.FreeRequest{Ticket: h.ticket}
			e.cleanup(mode, free, h.mayApplyUntil.Add(h.lock.options.TTL), h.mayApplyUntil)
		}
	}
}

// deadline is a context that ends by its deadline alone, for those that read it.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

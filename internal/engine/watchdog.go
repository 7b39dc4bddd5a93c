package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// This file is the watchdog: it looks at each hold of the client when it is due, for its renewal or
// for the end of trust. It has no goroutine while none is due.

// holdOf is the hold of a ticket; nil when there is none. The engine's mutex is held, as in the two
// functions below.
func (e *Engine) holdOf(id protocol.ID) *hold {
	for _, h := range e.holds.entries {
		if h.ticket.ID == id {
			return h
		}
	}
	return nil
}

// holdOfPool is a hold that passes from goroutine to goroutine of a pool; nil when there is none.
func (e *Engine) holdOfPool(p *pool) *hold {
	for _, h := range e.holds.entries {
		if h.pool == p {
			return h
		}
	}
	return nil
}

// allHolds are the holds, for a loop in which some go.
func (e *Engine) allHolds() []*hold { return slices.Clone(e.holds.entries) }

// renewDue does what is due: it ends holds whose trust is over, and renews. A renewal that is due
// soon goes along.
func (e *Engine) renewDue() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	due := make(map[time.Duration][]*hold) // by TTL, so that the patience of one is not that of another
	now := time.Now()
	for len(e.holds.entries) > 0 {
		h := e.holds.entries[0]
		if isPast(h.end(), now) {
			e.lose(h, h.lossReason())
			continue
		}
		if h.state == holdRetained && isPast(h.retention.until, now) {
			e.giveBack(h)
			continue
		}
		ttl := h.lock.options.TTL
		if h.renewAt.IsZero() || h.renewAt.After(now.Add(ttl/24)) {
			break
		}
		h.noteLate(now)
		h.renewAt = time.Time{}
		h.renewing = make(chan struct{})
		due[ttl] = append(due[ttl], h)
		e.holds.update(h)
	}
	e.holds.rearm()
	for ttl, holds := range due { // after the losses: telling comes first
		e.mu.after(func() { go e.renew(holds, ttl, time.Now()) })
	}
}

// renew sends the renewals of one round.
func (e *Engine) renew(holds []*hold, ttl time.Duration, sent time.Time) {
	renewals := make([]protocol.Renewal, len(holds))
	e.mu.Lock()
	for i, h := range holds {
		renewals[i] = h.renewalRequest()
	}
	e.mu.Unlock()
	ctx := deadline{context.Background(), sent.Add(timeout(ttl))}
	e.protocol.Renew(ctx, renewals, func(i int, r protocol.RenewalAnswer) { e.applyRenewal(holds[i], r, sent) })
	e.hearRecalls(holds)
}

// renewalRequest prolongs a hold for another TTL, within its min hold and its max hold. The
// engine's mutex is held.
func (h *hold) renewalRequest() protocol.Renewal {
	o := &h.lock.options
	r := protocol.Renewal{Resource: h.mode().resource(), Ticket: h.ticket, Token: h.grantToken, TTL: o.TTL}
	if o.MinHold > 0 {
		r.Floor = h.grantedAt + o.MinHold.Microseconds()
	}
	if o.MaxHold > 0 {
		r.Ceiling, r.Trusted = h.grantedAt+o.MaxHold.Microseconds(), h.maxHoldEnd
	}
	return r
}

// applyRenewal takes the answer to a renewal that was sent at a moment. Without an answer, trust
// goes on to its end, and the renewal is tried again (trap 7).
func (e *Engine) applyRenewal(h *hold, r protocol.RenewalAnswer, sent time.Time) {
	ttl := h.lock.options.TTL
	e.mu.Lock()
	defer e.mu.Unlock()
	h.endRenewal()
	if !h.isLive() || e.loseDenied(h, r) {
		return
	}
	now := time.Now()
	event, renewed := h.event(Renewed), h
	event.Left = h.end().Sub(now)
	switch {
	case r.Err != nil:
		h.change().failure = r.Err
		h.renewAt = now.Add(retry(ttl))
		e.holds.update(h)
		event.Kind, event.Err, renewed = Retried, r.Err, nil
		e.warn("holdfast: renewal failed", "name", h.lock.name, "left", event.Left, "error", r.Err)
	case isPast(h.end(), now): // too late: nothing brings it back
		e.lose(h, h.lossReason())
		return
	default:
		if h.promised < ttl { // little is left of a claim, however well all is
			event.Kind, event.Left, renewed = Confirmed, 0, nil
		}
		h.prolongTrust(sent, ttl)
		e.holds.update(h)
	}
	e.queueEvent(event, renewed)
}

// applyQuery takes the answer to a query, which prolongs nothing.
func (e *Engine) applyQuery(h *hold, r protocol.RenewalAnswer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.isLive() {
		e.loseDenied(h, r)
	}
}

// loseDenied ends a hold of which an answer says that it is not ours. An answer is believed at
// once. The engine's mutex is held.
func (e *Engine) loseDenied(h *hold, r protocol.RenewalAnswer) bool {
	var foreign *protocol.Foreign
	var broken *protocol.Broken
	switch {
	case errors.As(r.Err, &foreign):
		h.change().failure = r.Err
		e.lose(h, Foreign)
	case errors.As(r.Err, &broken):
		h.change().brokenBy = broken.By
		e.lose(h, Broken)
	case r.Err == nil && !r.Held:
		e.lose(h, Gone)
	default:
		return false
	}
	return true
}

// queryRequest is a renewal that only looks whether the hold is there.
func (h *hold) queryRequest() protocol.Renewal {
	return protocol.Renewal{Resource: h.lock.resource(), Ticket: h.ticket, Token: h.grantToken}
}

// queryHold asks the server whether a hold is there, and takes the answer. The error is
// a *protocol.Failure: no answer came.
func (e *Engine) queryHold(ctx context.Context, h *hold) error {
	var answer protocol.RenewalAnswer
	for {
		mode, err := e.settledMode(ctx, h)
		if err != nil {
			return err
		}
		renewal := h.queryRequest()
		renewal.Resource = mode.resource()
		e.protocol.Renew(ctx, []protocol.Renewal{renewal}, func(_ int, r protocol.RenewalAnswer) { answer = r })
		e.mu.Lock()
		same := mode == h.mode() && h.downgraded == nil || !h.isLive()
		e.mu.Unlock()
		if same || answer.Held || answer.Err != nil {
			break
		}
	}
	e.applyQuery(h, answer)
	return answer.Err
}

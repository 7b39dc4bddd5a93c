package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The pauses after a recall, in which a name is not retained: each is twice the one before. A hold
// that was retained ten times as long as the pause begins anew.
const (
	firstRetainPause = 50 * time.Millisecond
	lastRetainPause  = 30 * time.Second
)

// longestRecall is the longest pause of a call that does not wait, between two requests for a name
// whose holder may not use it.
const longestRecall = 16 * time.Millisecond

// A retainState is what makes a hold one that may stay with this process unused. The engine's mutex
// guards it.
type retainState struct {
	until      time.Time // of an unused hold: when it is given back
	recalled   bool      // another asks for the name, so the hold is not retained any more
	heardSince time.Time // since when messages tell that another asks
}

// A recentUse is how callers of one pool have used a name lately. It decides whether to retain it.
// The engine's mutex guards it.
type recentUse struct {
	last   time.Time     // of the uses
	again  int           // how many grants in a row came soon after the use before
	pause  time.Duration // after the last recall
	resume time.Time     // the end of that pause
}

// newLead makes an attempt for the leader of a pool, as newAttempt does. Its hold may be retained
// if the name is used again and again, and no other process has asked for it lately. The engine's
// mutex is held.
func (l *Lock) newLead(c *call, block int64) *attempt {
	if l.plain != nil {
		l = l.plain
	}
	if l.options.Retain == 0 || !l.engine.noteUse(l, time.Now()) {
		return l.newAttempt(c, block)
	}
	options := l.options
	options.TTL, options.Retain = min(options.TTL, options.RetainTTL), 0
	retaining := l.engine.NewLock(l.Spec(), options)
	retaining.plain = l
	a := retaining.newAttempt(c, passBlock)
	a.ticket.Retain = true
	if l.spec.Shared {
		a.ticket.Block = 1 // readers join the hold with the token that it has
	}
	return a
}

// noteUse notes that a lock is asked for, and reports whether to retain it: from the second time on
// that it is asked for soon after the use before. The engine's mutex is held.
func (e *Engine) noteUse(l *Lock, now time.Time) bool {
	u := e.uses[l.key()]
	if u == nil {
		e.forgetUses(now)
		u = &recentUse{again: -1}
		e.uses[l.key()] = u
	}
	if now.Sub(u.last) > l.options.Retain {
		u.again = -1
	}
	u.again++
	u.last = now
	return u.again >= 2 && !now.Before(u.resume)
}

// forgetUses makes room for other names: it takes out those that were not used lately. If more than
// can be retained are left, it forgets all, so that a client of many names seldom looks through
// them. The engine's mutex is held.
func (e *Engine) forgetUses(now time.Time) {
	if len(e.uses) < 2*e.config.RetainMax {
		return
	}
	maps.DeleteFunc(e.uses, func(_ poolKey, u *recentUse) bool { return now.Sub(u.last) > lastRetainPause })
	if len(e.uses) > e.config.RetainMax {
		clear(e.uses)
	}
}

// hearRecalls makes the message come that another asks for the hold of an attempt. Without it the
// hold is not retained. Done is to be called once the attempt has its hold.
func (a *attempt) hearRecalls(ctx context.Context) (done func()) {
	if !a.ticket.Retain && !a.ticket.Wanted {
		return func() {}
	}
	a.engine.subscription.addWaiter() // until the hold keeps it open
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	a.recallsSince, _ = a.engine.subscription.ensureSubscribed(ctx, a.lock.resource())
	if a.recallsSince.IsZero() && a.ticket.Retain {
		a.lock, a.ticket.Retain, a.ticket.Block = a.lock.plain, false, 1
	}
	return a.engine.subscription.removeWaiter
}

// isRetaining reports whether a hold may stay with this process unused, once its holder has
// released it. The engine's mutex is held.
func (h *hold) isRetaining() bool {
	return h.retention != nil && !h.retention.recalled && !h.ticketNamed
}

// retain keeps a hold whose last lease was released, and that nobody here waits for. False: it must
// be given back. The engine's mutex is held.
func (e *Engine) retain(h *hold) bool {
	p := h.pool
	if !h.isRetaining() || p.leader != nil || len(p.waiters) > 0 || p.hold != nil && p.hold != h ||
		!h.to(holdRetained) {
		return false
	}
	plain, now := h.lock.plain, time.Now()
	if u := e.uses[plain.key()]; u != nil {
		u.last = now
	}
	h.retention.until = now.Add(plain.options.Retain)
	p.hold = h
	e.holds.update(h)
	e.boundRetained(h)
	return true
}

// boundRetained gives back the unused hold that was used least lately, if there are too many. The
// engine's mutex is held.
func (e *Engine) boundRetained(latest *hold) {
	if e.unused <= e.config.RetainMax {
		return
	}
	oldest := latest
	for _, h := range e.holds.entries {
		if h.state == holdRetained && h.retention.until.Before(oldest.retention.until) {
			oldest = h
		}
	}
	e.giveBack(oldest)
}

// enterRetained begins the next tenure of a hold that is retained, without a request. Nil: there is
// none that the next holder could trust, or no token is left for it. The engine's mutex is held.
func (p *pool) enterRetained(ctx context.Context) *Lease {
	h, now := p.hold, time.Now()
	if h.state != holdRetained || ctx.Err() != nil || isPast(h.end(), now) || !h.mayPassOn(now) || !h.to(holdHeld) {
		return nil
	}
	p.hold = nil
	h.token++
	h.lock.engine.holds.update(h)
	return h.beginTenure(ctx)
}

// replaceRetained lets an attempt give the retained hold of its pool back in the request in which
// it asks for another. The engine's mutex is held.
func (e *Engine) replaceRetained(p *pool, a *attempt) {
	h := p.hold
	p.hold = nil
	h.to(holdReleasing)
	e.holds.remove(h)
	a.release = &h.ticket
	e.cleanupLateAsk(h)
}

// holdHere is a hold that another goroutine of this process uses and that would be retained: the
// server has nothing to tell of it. Nil: there is none. The engine's mutex is held.
func (l *Lock) holdHere(p *pool) *hold {
	if l.spec.Shared {
		return nil
	}
	h := l.engine.holdOfPool(p)
	if h == nil || h.state != holdHeld || !h.isRetaining() || isPast(h.end(), time.Now()) {
		return nil
	}
	return h
}

// awaitRecall lets time go by, between two requests of a call that does not wait, if a holder that
// may not use its hold is to give it back. False: the name is held, or the call has asked often
// enough.
func (l *Lock) awaitRecall(ctx context.Context, answer protocol.Answer, pause time.Duration) bool {
	return answer.Holder.Retains && !l.options.NoRecall && pause <= longestRecall && l.engine.pause(ctx, pause)
}

// Recall implements protocol.Sink. A hold that nobody uses is given back. One that is retained goes
// to the others at its release, and the holder of any is told. A ticket that waits here is to be
// given back like that.
func (e *Engine) Recall(id protocol.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.holdOf(id); h != nil {
		e.recall(h)
		e.noteWanted(h)
	} else if w := e.waits[id]; w != nil {
		w.mailbox.messages.recalled = true
	}
}

// recall lets a hold go to another process that asks, as soon as nobody uses it here. The engine's
// mutex is held.
func (e *Engine) recall(h *hold) {
	r := h.retention
	if r == nil || r.recalled || !h.isLive() {
		return
	}
	r.recalled = true
	e.pauseRetaining(h)
	if past := max(time.Since(h.heldSince), 1); h.joinableFor == 0 || past < h.joinableFor {
		h.joinableFor = past
	}
	if h.state == holdRetained {
		e.giveBack(h)
	}
}

// pauseRetaining is for a name that another process wants too: it is not retained for a while. The
// engine's mutex is held.
func (e *Engine) pauseRetaining(h *hold) {
	u, now := e.uses[h.lock.plain.key()], time.Now()
	if u == nil {
		return
	}
	if now.Sub(h.heldSince) > 10*u.pause {
		u.pause = 0
	}
	u.pause = min(max(2*u.pause, firstRetainPause), lastRetainPause)
	u.resume, u.again = now.Add(u.pause), -1
}

// giveBack gives a retained hold back in the background. The engine's mutex is held.
func (e *Engine) giveBack(h *hold) {
	event, since := h.event(Recalled), time.Now()
	h.to(holdReleasing)
	e.holds.remove(h)
	e.promoteNext(h)
	e.busy.Add(1)
	e.mu.after(func() { go e.freeRetained(h, event, since) })
}

// freeRetained frees a retained hold, and tells the observer if it was recalled.
func (e *Engine) freeRetained(h *hold, event Event, since time.Time) {
	defer e.busy.Done()
	_, err := e.free(h, time.Now().Add(e.config.ReleaseTimeout))
	if err != nil {
		e.config.Logger.Warn("holdfast: giving back a retained lock", "name", h.lock.name, "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.retention.recalled {
		event.Took, event.Err = time.Since(since), err
		e.queueEvent(event, nil)
	}
}

// hearRecalls asks again for the messages that others ask for holds. If messages about a hold that
// may be retained may have been missed, it counts as recalled.
func (e *Engine) hearRecalls(holds []*hold) {
	e.mu.Lock()
	told := slices.DeleteFunc(slices.Clone(holds), func(h *hold) bool { return !h.isTold })
	e.mu.Unlock()
	for _, h := range told {
		ctx := deadline{context.Background(), time.Now().Add(listenTimeout)}
		since, _ := e.subscription.ensureSubscribed(ctx, h.lock.resource())
		e.mu.Lock()
		if h.retention != nil && !since.Equal(h.retention.heardSince) {
			e.recall(h)
		}
		e.mu.Unlock()
	}
}

// recallAll is for messages that may have been missed: each hold that may be retained counts as
// recalled. The engine's mutex is held.
func (e *Engine) recallAll() {
	for _, h := range e.allHolds() {
		e.recall(h)
	}
}

// isToldOfAny reports whether messages must come that others ask for a hold of this process.
func (e *Engine) isToldOfAny() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.holds.entries, func(h *hold) bool { return h.isTold })
}

package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// An attempt is one to end the hold that has a token of these.
type attempt struct {
	client      *client // the holder's; nil: not known
	first, last int64
}

// is tells whether the attempt may have been made on a hold.
func (a attempt) is(h *holding, name string) bool {
	return (a.client == nil || a.client == h.client) && a.first <= h.tokens[name] && h.tokens[name] <= a.last
}

// block is more tokens than a grant reserves.
const block = 1 << 12

// A breaking is a hold that was ended. Its code has not stopped before its release.
type breaking struct {
	name  string
	until time.Time // how long others are kept out at least, unless it is released
}

// mayBeBroken tells whether somebody has tried to end a hold, by a token of the same block. mu is
// held.
func (l *ledger) mayBeBroken(h *holding) bool {
	return slices.ContainsFunc(h.op.Names, func(name string) bool {
		return slices.ContainsFunc(l.breaks[name], func(a attempt) bool { return a.is(h, name) })
	})
}

// mayBeEnded tells whether an operator may have ended a hold: the lease says so, or has not been
// told. mu is held.
func (l *ledger) mayBeEnded(h *holding, lost *holdfast.LostError) bool {
	return (lost == nil || lost.Reason == holdfast.LossBroken) && l.mayBeBroken(h)
}

// vacate notes that a hold was lost. A hold that was broken keeps others out until its release, or
// its end. mu is held.
func (l *ledger) vacate(h *holding, lost *holdfast.LostError) {
	r := l.rooms[class(h.op.Names[0])]
	if r.empty(h); lost.Reason == holdfast.LossBroken {
		r.idle = time.Now().Add(h.op.TTL * 101 / 100)
	}
}

// confirmed checks that a new hold does not begin before the code of one that was broken has
// stopped, or its time is over. mu is held.
func (l *ledger) confirmed(name string, h *holding) {
	held := judge.Sum(judge.Trusted(l.live[name]))
	for _, other := range l.granted[name] {
		if !other.lingers(name) || time.Now().Before(l.blind) {
			continue
		}
		held += other.op.Weight
		if h.overlaps(other) || held > permits {
			l.violation(judge.Overlap, "%s: %v got in while %v, which was broken, had not stopped", name, h, other)
		}
	}
}

// lingers tells whether a hold of a name was broken, and its code may still run.
func (h *holding) lingers(name string) bool {
	return h.broken != nil && h.broken.name == name && !h.released && !h.excused && h.lease.Err() != nil && time.Now().Before(h.broken.until)
}

// breaks lets other clients end a hold, one after the other or at one time, perhaps with a token of
// nobody. If one did, the code of the holder goes on for a while.
func (w *world) breaks(h *holding) {
	d := dice{rand.New(rand.NewPCG(w.plan.Seed, uint64(h.op.ID)))}
	name := h.op.Names[d.IntN(len(h.op.Names))]
	done := make(chan bool)
	tries := 1 + d.IntN(3)
	for n := range tries {
		later, limit, wrong := d.short(0, 200*time.Millisecond), d.short(time.Millisecond, 3*time.Second), d.percent(15)
		w.mu.Lock()
		c := w.clients[d.IntN(len(w.clients))]
		w.mu.Unlock()
		go func() {
			pass(time.Duration(n) * later)
			done <- w.breakOnce(c, h, name, wrong, limit)
		}()
	}
	ended := false
	for range tries {
		ended = <-done || ended
	}
	if !ended {
		return
	}
	w.hold(h, h.op.TTL)
	pass(d.short(0, h.op.TTL)) // not yet stopped
}

// breakOnce lets one client end a hold, and tells whether it has.
func (w *world) breakOnce(c *client, h *holding, name string, wrong bool, limit time.Duration) bool {
	w.mu.Lock()
	token, until, trusted := h.tokens[name], h.lease.Until(), h.Trusted()
	if wrong {
		token += 1e9
	} else {
		w.ledger.breaks[name] = append(w.ledger.breaks[name], attempt{h.client, token - block, token + block})
		delete(w.kept, name) // of a hold that is lost a quorum keeps no min hold
	}
	peaceful := !w.troubled()
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	began := time.Now()
	err := c.Break(ctx, name, token)
	w.mu.Lock()
	defer w.mu.Unlock()
	peaceful = peaceful && !w.troubled() && !c.dead && !h.client.dead && time.Since(began) < limit
	if err == nil {
		w.note(c, h.op.ID, "broke", "")
		if trusted && h.broken == nil {
			h.broken = &breaking{name, until}
		}
		w.judgeBreak(h, wrong)
		return true
	}
	w.note(c, h.op.ID, "not broken", "")
	none, away := errors.Is(err, holdfast.ErrNotHeld), errors.Is(err, holdfast.ErrUnavailable) // as in reason
	if peaceful && !away && (!none || trusted && !wrong && h.Trusted()) {
		w.violation(judge.Failed, "break of %v: %v", h, err)
	}
	return false
}

// judgeBreak checks a Break that was done. mu is held.
func (w *world) judgeBreak(h *holding, wrong bool) {
	if wrong {
		w.violation(judge.Token, "%v was broken with the token of another", h)
	}
	if left := time.Until(h.lease.Until()); left > h.op.TTL+h.op.TTL/100 && h.op.MinHold < h.op.TTL {
		w.violation(judge.Trust, "%v was broken, and is trusted for %v", h, left)
	}
}

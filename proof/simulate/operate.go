package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// An Operation is what an operator does.
type Operation struct {
	At     time.Duration
	Client int // the operator's
	Name   string
	Evict  bool   // it takes a waiter out of the queue; else it breaks a hold
	Late   bool   // it waits for a hold that is handed over and not taken up
	Which  uint64 // of the holds or the waiters that it sees
}

// drawOperators draws them near operations, as there is nothing to break elsewhere.
func (p *Plan) drawOperators(d dice) {
	some := minOps / 12
	if p.Mode == Quorum {
		some = minOps / 3 // most come when nobody holds
	}
	for range some {
		near := p.Ops[d.IntN(len(p.Ops))]
		p.Operators = append(p.Operators, Operation{
			At: near.At + d.Short(0, 2*time.Second), Client: d.IntN(len(p.Latency)),
			Name:  near.Names[d.IntN(len(near.Names))],
			Evict: d.Percent(30) && p.Mode != Quorum, Late: d.Percent(50) && p.Mode != Quorum, Which: d.Uint64(),
		})
	}
	p.sortOperators()
	for i := range p.Ops {
		if d.Percent(50) {
			p.Ops[i].RunsOn = d.Short(0, 5*time.Second)
		}
		if p.Ops[i].Type == history.Group { // the names that were not broken are held for as long
			p.Ops[i].RunsOn = min(p.Ops[i].RunsOn, time.Second)
		}
	}
}

func (p *Plan) sortOperators() {
	slices.SortStableFunc(p.Operators, func(a, b Operation) int { return int(a.At - b.At) })
}

func (w *world) operate(o *Operation) {
	if c := w.client(o.Client); o.Evict {
		w.evict(c, o)
	} else {
		w.breakOneHold(c, o)
	}
}

// breakOneHold breaks one of the holds of a name that it sees.
func (w *world) breakOneHold(c *client, o *Operation) {
	const looks = 25
	for range looks {
		info, err := c.Inspect(c.ctx, o.Name)
		if err != nil {
			w.noteOperation(c, "break", err)
			return
		}
		holds := info.Holds
		if o.Late {
			holds = slices.DeleteFunc(slices.Clone(holds),
				func(h lockinfo.Hold) bool { return h.State != lockinfo.StateHandedOver })
		}
		if len(holds) == 0 {
			sleep(2 * time.Millisecond)
			continue
		}
		hold := holds[o.Which%uint64(len(holds))]
		if hold.Token == 0 {
			return // no majority of a quorum has it
		}
		w.breakHold(c, o, &hold)
		return
	}
}

// breakHold breaks a hold. The remainder keeps others out for as long as the hold was trusted
// before, at least, unless its holder releases it.
func (w *world) breakHold(c *client, o *Operation, hold *lockinfo.Hold) {
	a, until := breakAttempt{hold.Token, hold.LastToken}, map[*holding]time.Time{}
	if w.plan.Mode == Quorum { // a master that was away may tell of another block
		a.first, a.last = a.first-block, a.last+block
	}
	w.mu.Lock()
	if w.plan.Mode == Quorum {
		delete(w.kept, o.Name) // of a hold that is lost a quorum keeps no min hold
	}
	w.ledger.breaks[o.Name] = append(w.ledger.breaks[o.Name], a)
	for _, h := range w.live[o.Name] {
		if a.matches(h, o.Name) && h.Trusted() {
			until[h] = h.lease.Until()
		}
	}
	w.mu.Unlock()
	err := c.Break(c.ctx, o.Name, hold.Token+int64(o.Which%uint64(hold.LastToken-hold.Token+1)))
	w.mu.Lock()
	for h := range until {
		if err == nil && h.broken == nil {
			h.broken = &breaking{o.Name, until[h]}
		}
	}
	w.mu.Unlock()
	if err == nil && hold.State == lockinfo.StateHandedOver {
		w.noteOperation(c, "break of a hand-over", nil)
		return
	}
	w.noteOperation(c, "break", err)
	w.noteShards(nil, 0)
}

// evict takes one of the waiters of a name out of the queue.
func (w *world) evict(c *client, o *Operation) {
	info, err := c.Inspect(c.ctx, o.Name)
	if err == nil {
		err = holdfast.ErrNotWaiting
	}
	if len(info.Queue) > 0 {
		w.mu.Lock()
		w.evicts[o.Name] = true
		w.mu.Unlock()
		err = c.Evict(c.ctx, o.Name, info.Queue[o.Which%uint64(len(info.Queue))].ID)
	}
	w.noteOperation(c, "evict", err)
}

// checkEvicted returns what became of a wait that says it was evicted. mu is held.
func (l *ledger) checkEvicted(w *wait) string {
	if !slices.ContainsFunc(w.op.Names, func(name string) bool { return l.evicts[name] }) {
		l.addViolation(judge.Failed, "%v was evicted by nobody", w)
	}
	return "evicted"
}

// noteOperation notes what came of an act of an operator; it takes mu.
func (l *ledger) noteOperation(c *client, what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.addEvent(c, -1, what, "")
	case c.dead, errors.Is(err, holdfast.ErrNotHeld), errors.Is(err, holdfast.ErrNotWaiting):
		l.addEvent(c, -1, what+" in vain", "")
	case l.isTroubled(), l.plan.Mode != Calm && errors.Is(err, holdfast.ErrUnavailable): // as in reason
		l.addEvent(c, -1, what+" failed", "")
	default:
		l.addViolation(judge.Failed, "%s by %s: %v", what, c.name, err)
	}
}

// A breakAttempt is one to end the hold that has a token of these.
type breakAttempt struct{ first, last int64 }

// matches reports whether the attempt may have been made on a hold.
func (a breakAttempt) matches(h *holding, name string) bool {
	return a.first <= h.tokens[name] && h.tokens[name] <= a.last
}

// block is more tokens than a grant reserves.
const block = 1 << 12

// A breaking is a hold that was ended. Its code has not stopped before its release.
type breaking struct {
	name  string
	until time.Time // how long others are kept out at least, unless it is released
}

// mayBeBroken reports whether somebody has tried to end a hold, by a token of the same block. mu is
// held.
func (l *ledger) mayBeBroken(h *holding) bool {
	return slices.ContainsFunc(h.op.Names, func(name string) bool {
		return slices.ContainsFunc(l.breaks[name], func(a breakAttempt) bool { return a.matches(h, name) })
	})
}

// mayBeEnded reports whether an operator may have ended a hold: the lease says so, or has not been
// told. mu is held.
func (l *ledger) mayBeEnded(h *holding, lost *holdfast.LostError) bool {
	return (lost == nil || lost.Reason == holdfast.LossBroken) && l.mayBeBroken(h)
}

// noteLoss notes that a hold was lost. A hold that was broken keeps others out until its release,
// or its end. mu is held.
func (l *ledger) noteLoss(h *holding, lost *holdfast.LostError) {
	r := l.classes[class(h.op.Names[0])]
	if r.noteEnd(h); lost.Reason == holdfast.LossBroken {
		r.idle = time.Now().Add(h.op.TTL * 101 / 100)
	}
}

// checkBroken checks that a new hold does not begin before the code of one that was broken has
// stopped, or its time is over. mu is held.
func (l *ledger) checkBroken(name string, h *holding) {
	held := judge.Sum(judge.Trusted(l.live[name]))
	for _, other := range l.granted[name] {
		if !other.stillRuns(name) || time.Now().Before(l.excusedUntil) {
			continue
		}
		held += other.op.Weight
		if h.overlaps(other) || held > maxPermits {
			l.addViolation(judge.Overlap, "%s: %v got in while %v, which was broken, had not stopped", name, h, other)
		}
	}
}

// stillRuns reports whether a hold of a name was broken, and its code may still run.
func (h *holding) stillRuns(name string) bool {
	return h.broken != nil && h.broken.name == name && !h.released && !h.excused && h.lease.Err() != nil &&
		time.Now().Before(h.broken.until)
}

package explore

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// exclusion is rule 1: no two callers that exclude each other may act at one moment.
func (x *search) exclusion(t *state) error {
	for i := range x.Callers {
		a, c := &t.attempts[i], &x.Callers[i]
		if !a.acts(t.now) {
			continue
		}
		weight := c.Weight
		for j := i + 1; j < len(x.Callers); j++ {
			b, d := &t.attempts[j], &x.Callers[j]
			if !b.acts(t.now) || c.Name != d.Name {
				continue
			}
			weight += d.Weight
			if c.Kind == protocol.Semaphore && weight > mostPermits {
				return fmt.Errorf("permits: %d are taken of %d", weight, mostPermits)
			}
			if c.Kind != protocol.Semaphore &&
				c.conflict(d, c.Shared || a.mode != whole, d.Shared || b.mode != whole) {
				return fmt.Errorf("overlap: callers %d and %d are trusted at one moment", i, j)
			}
		}
	}
	return nil
}

// judge judges what a request did at the server.
func (x *search) judge(before, t *state, r *Request) error {
	for i := range t.server.records {
		got := &t.server.records[i]
		var err error
		switch got.State {
		case memory.RecordHeld:
			if err = x.judgeHold(before, t, r, got); err == nil {
				err = x.judgeLeft(t, got)
			}
		case memory.RecordPlace, memory.RecordBroken:
			err = x.judgeLeft(t, got)
		case memory.RecordLatch:
			err = judgeLatch(t, got)
		}
		if err != nil {
			return err
		}
	}
	if err := x.judgeRecall(t, r); err != nil {
		return err
	}
	if had := find(before, memory.RecordHeld, ids[r.Who][r.number]); had != nil && had.Until > serverTime(t.now) &&
		r.op == opAsk && r.answer == held {
		return nil // it prolonged its hold, and looked at nothing else
	}
	return x.judgeFree(t, r)
}

// judgeRecall is the rule that each hold that may be unused, and keeps out a ticket that asks, is
// recalled.
func (x *search) judgeRecall(t *state, r *Request) error {
	if r.op != opAsk || r.answer != queued && r.answer != busy {
		return nil
	}
	for _, got := range t.server.records {
		c := &x.Callers[r.Who]
		if got.State == memory.RecordHeld && got.Name == c.Name && x.Callers[callerOf(got.ID)].Retains &&
			!(got.Shared && c.Shared) && callerOf(got.ID) != int(r.Who) && !slices.Contains(x.recalled, got.ID) {
			return fmt.Errorf("recall: ticket %s may be unused, and is not told that another asks", got.ID)
		}
	}
	return nil
}

// judgeLeft is the rule that a caller leaves nothing behind. What a Break left of a hold with a min
// hold lasts until that is over.
func (x *search) judgeLeft(t *state, got *memory.Record) error {
	who, number := callerOf(got.ID), numberOf(got.ID)
	a := &t.attempts[who]
	if got.State == memory.RecordPlace && x.holds(t, got.ID) {
		return fmt.Errorf("left: ticket %d.%d holds, and has a place", who, number)
	}
	rests := got.State == memory.RecordBroken && x.Callers[who].Min > 0
	done := a.phase == idle || a.number != number && a.old != number
	if got.Until > serverTime(t.now) && a.phase != crashed && done && !rests {
		return fmt.Errorf("left: ticket %d.%d is at the server, and its caller has done with it", who, number)
	}
	return nil
}

// judgeLatch is the rule that each count-down counts once.
func judgeLatch(t *state, latch *memory.Record) error {
	counted := 0
	for _, r := range t.server.records {
		if r.State == memory.RecordCounted {
			counted++
		}
	}
	if latch.Count+int64(counted) != countDowns {
		return fmt.Errorf("latch: %d have counted down, and %d of %d are left", counted, latch.Count, countDowns)
	}
	return nil
}

func (x *search) judgeHold(before, t *state, r *Request, got *memory.Record) error {
	if was := find(before, memory.RecordHeld, got.ID); x.NoQueue || was != nil && was.Token == got.Token {
		return nil
	}
	if got.Token <= before.largest {
		return fmt.Errorf("token: ticket %s has %d, and %d was given out before", got.ID, got.Token, before.largest)
	}
	t.largest = max(t.largest, got.Token)
	if who := callerOf(got.ID); t.reserved > t.now && int(t.reserver) != who {
		return fmt.Errorf("minhold: ticket %s is in before a min hold is over", got.ID)
	}
	return x.judgeOrder(before, t, r, got)
}

// judgeOrder is the rule that a new hold passes no place where a process waits.
func (x *search) judgeOrder(before, t *state, r *Request, got *memory.Record) error {
	place := len(before.server.records)
	if was := find(before, memory.RecordPlace, got.ID); was != nil {
		place = was.Place
	}
	for _, old := range before.server.records {
		if old.State != memory.RecordPlace {
			continue
		}
		passed := callerOf(old.ID)
		ahead := old.Name == got.Name && old.Place < place && !old.Closed &&
			old.Until > serverTime(t.now) && passed != int(r.Who) && !x.Callers[passed].NoMessages
		if ahead && x.Callers[callerOf(got.ID)].Owner == "" && x.attended(t, &old) &&
			find(t, memory.RecordPlace, old.ID) != nil {
			return fmt.Errorf("order: ticket %s passes ticket %s", got.ID, old.ID)
		}
	}
	return nil
}

// find returns what is known of a ticket, or nil.
func find(t *state, state memory.RecordState, id protocol.ID) *memory.Record {
	for i := range t.server.records {
		if r := &t.server.records[i]; r.State == state && r.ID == id {
			return r
		}
	}
	return nil
}

// holds reports whether a ticket that has no kept place holds. A downgrade makes of the hold that a
// late ask means another one, so then the ask may join the queue.
func (x *search) holds(t *state, id protocol.ID) bool {
	c := &x.Callers[callerOf(id)]
	return c.Keep == 0 && !c.Downgrades && find(t, memory.RecordHeld, id) != nil
}

// attended reports whether a process waits at a place, as the server knows it.
func (x *search) attended(t *state, place *memory.Record) bool {
	who := callerOf(place.ID)
	keep := x.Callers[who].Keep
	return keep == 0 || !place.Closed && t.attempts[who].listens && place.Until-micros(keep-x.Life) > serverTime(t.now)
}

// judgeFree is the rule that nobody waits for a name that is free, after a request that looked.
func (x *search) judgeFree(t *state, r *Request) error {
	switch {
	case x.NoQueue, r.op == opRenew, r.op == opBreak, r.op == opLatch, r.op == opDowngrade && r.answer != held,
		r.answer >= broken && r.answer <= refused,
		r.answer == tooLate || r.answer == nothing, r.answer == busy && x.Callers[r.Who].Keep > 0:
		return nil
	}
	var first *memory.Record
	for i := range t.server.records {
		got := &t.server.records[i]
		if got.Name == x.Callers[r.Who].Name && got.State == memory.RecordPlace && got.Until > serverTime(t.now) &&
			(first == nil || got.Place < first.Place) && x.attended(t, got) {
			first = got
		}
	}
	if first == nil || x.isKeptOut(t, first) {
		return nil
	}
	return fmt.Errorf("idle: ticket %s waits for a name that it may have", first.ID)
}

// isKeptOut reports whether holds or remainders keep the ticket of a place out.
func (x *search) isKeptOut(t *state, place *memory.Record) bool {
	c := &x.Callers[callerOf(place.ID)]
	weight, permits := c.Weight, int64(0)
	for _, got := range t.server.records {
		if got.State == memory.RecordName && got.Name == place.Name {
			permits = got.Count
		}
		if got.Name != place.Name || got.State > memory.RecordBroken || got.Until <= serverTime(t.now) {
			continue
		}
		if weight += x.Callers[callerOf(got.ID)].Weight; !c.Shared || !got.Shared {
			return true
		}
	}
	return weight > permits
}

// calmEnd is the rule that some waiter can always get in. Nobody does anything any more but those
// that wait, which ask each tick: one of them holds when all that holds now is over, and the claim
// of each that does not wait any more. A state is judged once for all that differ only in what is
// under way.
func (x *search) calmEnd(s *state) error {
	t := *s
	if !x.silence(&t) {
		return nil
	}
	at := x.key(&t)
	if _, judged := x.calm[at]; judged {
		return nil
	}
	x.calm[at] = struct{}{}
	bound := x.TTL + 1
	for _, c := range x.Callers {
		bound += x.Claim + c.Min
	}
	for end := t.now + bound; t.now <= end; t.now++ {
		for i := range x.Callers {
			if t.attempts[i].phase == waiting && x.askOnce(&t, int8(i)) {
				return nil
			}
		}
	}
	return fmt.Errorf("stuck: nobody gets in within %d ticks", bound)
}

// silence lets everybody fall silent but those that wait, and reports whether anybody does.
func (x *search) silence(t *state) (waits bool) {
	t.late = nil
	for i := range x.Callers {
		a, c := &t.attempts[i], &x.Callers[i]
		is := a.phase == waiting || a.phase == fresh && !c.Tries
		*a = attempt{phase: crashed, number: a.number, old: a.old, grant: -1, inLine: a.inLine && is,
			listens: a.listens && is, mode: a.mode, permits: a.permits}
		if is && c.Kind != protocol.Latch && !c.Part {
			a.phase, a.mode, waits = waiting, whole, true
		}
	}
	return waits
}

// askOnce lets a waiter ask, and reports whether it waits no longer.
func (x *search) askOnce(t *state, who int8) bool {
	a, keeps := &t.attempts[who], x.Callers[who].Keep > 0
	r := t.request(opAsk, who)
	r.join, r.inLine = !keeps, a.inLine
	r.answer, _, t.server = x.send(t, &r)
	a.inLine = a.inLine || r.answer == queued
	return r.answer == held || r.answer > busy || r.answer == busy && keeps
}

package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A moveKind is what happens next.
type moveKind byte

const (
	pass    moveKind = iota // a tick
	start                   // a caller begins an attempt
	ask                     // a waiter asks
	askAll                  // a group asks for all that it lacks
	abandon                 // a caller gives up
	renew                   // a holder renews
	release                 // a holder gives back
	free                    // what was given up is given back
	yield                   // a holder gives back, and asks for the next
	change                  // a holder downgrades
	wait                    // a process waits at a kept place
	stop                    // its last ask
	die                     // a process dies at its kept place
	detach                  // a hold leaves its process
	crash                   // a process dies, or its host is silent
	hear                    // the message of a hand-over comes
	retain                  // a holder stops using its hold, and keeps it
	enter                   // it uses a hold that it kept
	recall                  // the message that another asks for its hold comes
	deliver                 // a request that was slow reaches the server
	read                    // an answer that was slow comes
	arrive                  // a late request reaches the server
	operate                 // an operator breaks, evicts or resizes
	forget                  // a master of a quorum forgets all
)

// A fate is what becomes of a request.
type fate byte

const (
	answered   fate = iota
	unanswered      // it arrives at once, and the answer is lost
	slow            // it arrives when a tick has passed, or is lost
	slowAnswer      // the answer comes when a tick has passed, or is lost
	missing         // it is lost
	late            // it arrives at any later moment, and no answer comes
)

// A move is what happens to one caller next.
type move struct {
	kind moveKind
	who  int8
	arg  int8
	fate fate
}

// moves appends what can happen next.
func (x *search) moves(all []move, s *state) []move {
	all = append(all, move{kind: pass})
	for i := range x.Callers {
		who, a := int8(i), &s.attempts[i]
		switch {
		case a.out.op == noOp:
			for _, kind := range x.wishes(s, who) {
				all = x.fates(all, s, move{kind: kind, who: who})
			}
		case a.out.op == opRenew && a.out.sent == s.now && x.Callers[i].Retains:
			for _, kind := range x.wishesOfRetainer(s, who) {
				if kind != recall || a.phase == holding {
					all = append(all, move{kind: kind, who: who})
				}
			}
		case a.out.sent == s.now: // only with the next tick does it matter that it is slow
		case a.out.answered:
			all = append(all, move{kind: read, who: who})
		default:
			all = append(all, move{kind: deliver, who: who}, move{kind: deliver, who: who, fate: unanswered})
		}
	}
	for i := range s.late {
		all = append(all, move{kind: arrive, who: s.late[i].Who, arg: int8(i)})
	}
	return x.operations(all, s)
}

// operations appends what an operator may do.
func (x *search) operations(all []move, s *state) []move {
	if x.Resizes {
		all = append(all, move{kind: operate, arg: int8(3 - s.permits)})
	}
	for i := range s.server.records {
		r := &s.server.records[i]
		if x.Breaks && r.State == memory.RecordHeld && r.Until > serverTime(s.now) {
			all = append(all, move{kind: operate, who: int8(callerOf(r.ID)), arg: -1 - numberOf(r.ID)})
		}
		if x.Evicts && r.State == memory.RecordPlace && !x.Callers[callerOf(r.ID)].Part {
			all = append(all, move{kind: operate, who: int8(callerOf(r.ID)), arg: -20 - numberOf(r.ID)})
		}
	}
	return all
}

// fates appends a move with all that may become of its request.
func (x *search) fates(all []move, s *state, m move) []move {
	switch m.kind {
	case die, detach, crash, hear, retain, enter, recall:
		return append(all, m)
	}
	for m.fate = answered; m.fate <= late; m.fate++ {
		idle := m.fate == missing && (m.kind == renew || m.kind == free)
		if idle || m.fate == late && len(s.late) == x.Late || m.fate >= slow && m.fate <= slowAnswer && !x.Slow {
			continue
		}
		all = append(all, m)
	}
	return all
}

// wishes are what a caller without a request under way may do.
func (x *search) wishes(s *state, who int8) []moveKind {
	a, c := &s.attempts[who], &x.Callers[who]
	var can []moveKind
	switch a.phase {
	case idle:
		if x.mayBegin(s, who) {
			can = append(can, start)
		}
	case fresh, waiting:
		can = x.wishesOfWaiter(s, who)
	case placed:
		can = append(can, wait, abandon)
	case holding, unused:
		can = append(x.wishesOfHolder(s, who), x.wishesOfRetainer(s, who)...)
	case lost:
		can = append(can, release)
	case detached:
		can = append(can, renew)
	case leaving:
		can = append(can, free)
	case crashed, over:
	}
	if lives := a.phase >= fresh && a.phase <= detached && a.phase != lost; c.Crashes && lives {
		can = append(can, crash)
	}
	return can
}

// wishesOfHolder are what a caller whose hold is trusted may do.
func (x *search) wishesOfHolder(s *state, who int8) (can []moveKind) {
	a, c := &s.attempts[who], &x.Callers[who]
	switch {
	case a.mode == changing:
		can = append(can, change)
	case !c.Fixed:
		can = append(can, renew)
	}
	if certain := a.until < s.now; certain { // else the engine looks after the ask that may come late
		if c.Downgrades && a.mode == whole {
			can = append(can, change)
		}
		if c.Yields || c.Retains && a.entries+1 == block {
			can = append(can, yield)
		}
		if c.Detaches {
			can = append(can, detach)
		}
	}
	return append(can, release)
}

// wishesOfRetainer are what a caller that retains does without a request.
func (x *search) wishesOfRetainer(s *state, who int8) (can []moveKind) {
	a := &s.attempts[who]
	switch {
	case !x.Callers[who].Retains:
		return nil
	case a.phase == holding && !a.wanted:
		can = append(can, retain)
	case a.phase == unused && a.entries+1 < block:
		can = append(can, enter)
	}
	if a.recall {
		can = append(can, recall)
	}
	return can
}

// wishesOfWaiter are what a caller that waits may do.
func (x *search) wishesOfWaiter(s *state, who int8) (can []moveKind) {
	a, c := &s.attempts[who], &x.Callers[who]
	switch {
	case c.Kind == protocol.Latch:
		return append(can, ask)
	case c.Part && s.attempts[who-1].phase != holding: // names are waited for in order
	case c.Group > 0 && a.phase == fresh && !a.alone:
		can = append(can, askAll, ask)
	default:
		can = append(can, ask)
	}
	if a.grant >= 0 && a.phase == waiting {
		can = append(can, hear)
	}
	if a.listens {
		return append(can, stop, die)
	}
	return append(can, abandon)
}

// apply returns the state after a move, and what the server was asked.
//
//nolint:gocyclo // a table
func (x *search) apply(s *state, m move) (*state, *Request, error) {
	t := *s
	a, c := &t.attempts[m.who], &x.Callers[m.who]
	switch m.kind {
	case pass:
		x.pass(&t)
	case start:
		x.begin(&t, m.who)
	case ask, wait, stop:
		if m.kind == wait {
			a.phase, a.listens, a.inLine = waiting, true, true
			t.server = x.listen(t.server, m.who, a.number, true)
		}
		a.out = t.request(opAsk, m.who)
		a.alone = c.Group > 0
		if c.Kind == protocol.Latch {
			a.out.op = opLatch
		}
		a.out.join = !c.Tries && (c.Keep == 0 || a.phase == fresh)
		a.out.inLine, a.out.leaving = a.inLine, m.kind == stop
	case askAll:
		a.out = t.request(opAsk, m.who)
		if c.Group > 0 && !c.Part && t.attempts[m.who+1].phase != holding {
			a.out.op = opAskAll
		}
	case abandon, release:
		t.leave(m.who, c)
	case free:
		t.free(m.who, c)
	case renew:
		a.out = t.request(opRenew, m.who)
		if c.Min > 0 {
			a.out.keep = a.granted + c.Min
		}
	case yield:
		old := a.number
		*a = attempt{phase: fresh, number: x.unused(&t, m.who), old: old, grant: -1, permits: t.permits}
		a.out = t.request(opAsk, m.who)
		a.out.join = true
	case change:
		a.mode = changing
		a.out = t.request(opDowngrade, m.who)
	case die:
		a.phase, a.listens = placed, false
		t.server = x.listen(t.server, m.who, a.number, false)
	case detach:
		a.phase, a.trust = detached, 0
	case crash:
		*a = attempt{phase: crashed, number: a.number, old: a.old, grant: -1, permits: a.permits}
	case hear:
		x.hear(&t, a, c)
	case retain:
		a.phase = unused
	case enter:
		return x.enter(&t, a, m.who)
	case recall:
		if a.recall, a.wanted = false, true; a.phase == unused {
			t.leave(m.who, c)
		}
	case read:
		x.read(&t, m.who)
	case deliver:
	case arrive:
		r := t.late[m.arg]
		t.late = slices.Delete(slices.Clone(t.late), int(m.arg), int(m.arg)+1)
		r.answer, _, t.server = x.send(&t, &r)
		return x.judged(s, &t, &r)
	case operate:
		r := t.operation(m)
		r.answer, _, t.server = x.send(&t, &r)
		return x.judged(s, &t, &r)
	}
	if m.kind == pass || m.kind == read || a.out.op == noOp || m.fate == slow {
		x.settle(&t)
		return &t, nil, x.exclusion(&t)
	}
	return x.carry(s, &t, m)
}

// carry carries a request of a caller to its fate.
func (x *search) carry(before, t *state, m move) (*state, *Request, error) {
	a := &t.attempts[m.who]
	if m.fate >= missing {
		if m.fate == late {
			t.delay(a.out)
		}
		t.giveUp(m.who)
		x.settle(t)
		return t, nil, x.exclusion(t)
	}
	a.out.answer, a.out.server, t.server = x.send(t, &a.out)
	a.out.answered = true
	came := a.out
	switch m.fate {
	case answered:
		x.read(t, m.who)
	case unanswered:
		t.giveUp(m.who)
	}
	return x.judged(before, t, &came)
}

// judged settles a state that a request has made, and judges it.
func (x *search) judged(before, t *state, r *Request) (*state, *Request, error) {
	came := *r
	x.settle(t)
	err := x.exclusion(t)
	if err == nil {
		err = x.judge(before, t, &came)
	}
	return t, &came, err
}

// request is one that a caller sends now.
func (t *state) request(op op, who int8) Request {
	a := &t.attempts[who]
	return Request{Who: who, op: op, number: a.number, old: a.old, sent: t.now, permits: a.permits,
		shared: a.mode == shares || op == opDowngrade}
}

func (t *state) operation(m move) Request {
	r := Request{Who: m.who, op: opResize, old: -1, sent: t.now, permits: int64(m.arg)}
	switch {
	case m.arg <= -20:
		r.op, r.number, r.permits = opEvict, -20-m.arg, t.permits
	case m.arg < 0:
		r.op, r.number, r.permits = opBreak, -1-m.arg, t.permits
	default:
		t.permits = r.permits
	}
	return r
}

// send sends a request to the server, and notes the messages that come of it.
func (x *search) send(t *state, r *Request) (answer, int64, *server) {
	x.now, x.told, x.recalled = begin.Add(ticks(t.now)), x.told[:0], x.recalled[:0]
	next := t.server.Clone()
	r.At = t.now
	came, at := x.World.send(next.Client(int(r.Who)), r, begin)
	for _, g := range x.told {
		if a := &t.attempts[callerOf(g.ID)]; a.number == numberOf(g.ID) {
			a.grant = ticksOf(g.At)
		}
	}
	for _, id := range x.recalled {
		if a := &t.attempts[callerOf(id)]; a.number == numberOf(id) {
			a.recall = true
		}
	}
	out := &server{Server: next}
	out.records, _ = next.Records(make([]memory.Record, 0, len(t.server.records)+2))
	for i := range out.records {
		if got := &out.records[i]; got.State == memory.RecordHeld && x.Callers[callerOf(got.ID)].Retains {
			if a := &t.attempts[callerOf(got.ID)]; a.number == numberOf(got.ID) && a.token != got.Token {
				a.token, a.entries = got.Token, 0
			}
		}
	}
	return came, at, out
}

// listen returns a server that a process listens to, or does not any more, for a kept place.
func (x *search) listen(s *server, who, number int8, listens bool) *server {
	next := s.Clone()
	if listens {
		_, _ = next.Client(int(who)).ListenTicket(context.Background(), ids[who][number], x)
	} else {
		next.Unlisten(x.World.Name, ids[who][number])
	}
	return &server{next, s.records}
}

// unused is a number that no ticket of a caller has that is still to be found anywhere.
func (x *search) unused(t *state, who int8) int8 {
	for number := range int8(10) {
		used := false
		for _, partner := range []int8{who, who + 1} {
			if partner > who && x.Callers[who].Group == 0 {
				continue
			}
			id := ids[partner][number]
			used = used || t.attempts[partner].phase != idle && t.attempts[partner].number == number ||
				slices.ContainsFunc(t.server.records, func(r memory.Record) bool { return r.ID == id }) ||
				slices.ContainsFunc(t.late, func(r Request) bool {
					return r.Who == partner && (r.number == number || r.old == number)
				})
		}
		if !used {
			return number
		}
	}
	panic("all tickets are in use")
}

// begin begins an attempt with its first request.
func (x *search) begin(t *state, who int8) {
	c, a := &x.Callers[who], &t.attempts[who]
	*a = attempt{phase: fresh, number: x.unused(t, who), old: -1, grant: -1, permits: t.permits}
	switch {
	case c.Group > 0 && !c.Part:
		t.attempts[who+1] = *a
		a.out = t.request(opAskAll, who)
	case c.Kind == protocol.Latch:
		a.out = t.request(opLatch, who)
	default:
		a.out = t.request(opAsk, who)
		a.out.join = !c.Tries
	}
}

// leave gives up, or releases: what the ticket has, and may still get, is given back. The parts of
// a group leave together.
func (t *state) leave(who int8, c *Caller) {
	t.attempts[who].phase = leaving
	t.free(who, c)
}

func (t *state) free(who int8, c *Caller) {
	a := &t.attempts[who]
	a.trust = 0 // the code has stopped
	a.out = t.request(opFree, who)
	a.out.both = a.mode == changing || a.mode == shares && a.until >= t.now
	if c.Min > 0 && a.granted > 0 {
		a.out.keep = a.granted + c.Min
	}
}

// delay lets a request arrive later.
func (t *state) delay(r Request) {
	r.answered, r.answer, r.server = false, 0, 0
	if r.op == opFree || r.op == opRenew {
		r.sent = 0 // it may come at any time
	}
	t.late = append(slices.Clone(t.late), r)
}

// giveUp ends the wait for an answer.
func (t *state) giveUp(who int8) {
	a := &t.attempts[who]
	switch a.out.op {
	case opAskAll:
		other := &t.attempts[who+1]
		other.until = max(other.until, a.out.sent+patience)
		fallthrough
	case opAsk, opDowngrade:
		a.until = max(a.until, a.out.sent+patience)
	}
	if a.out.leaving {
		a.phase = placed
	}
	a.out = Request{}
}

// pass lets a tick pass. Nobody waits longer for an answer than its patience.
func (x *search) pass(t *state) {
	t.now++
	for i := range x.Callers {
		a := &t.attempts[i]
		if a.out.op != noOp && a.out.sent+patience < t.now {
			t.giveUp(int8(i))
		}
	}
	t.late = slices.DeleteFunc(slices.Clone(t.late), func(r Request) bool { return x.ineffective(&r, t.now) })
}

// ineffective reports whether a request that arrives now does nothing, as its sender said so.
func (x *search) ineffective(r *Request, now int64) bool {
	switch r.op {
	case opAsk, opAskAll, opDowngrade, opLatch:
		return r.sent+patience < now
	}
	return false
}

// hear takes the message of a hand-over.
func (x *search) hear(t *state, a *attempt, c *Caller) {
	end := a.grant + x.Claim
	if end > t.now && !c.Fixed && c.Min == 0 && c.Keep == 0 {
		a.phase, a.trust, a.granted = holding, end, a.grant
	}
	a.grant = -1
}

// enter lets a caller use the hold that it has retained, with the next token of its block. Readers
// join the hold, with the token that it has.
func (x *search) enter(t *state, a *attempt, who int8) (*state, *Request, error) {
	if a.phase = holding; x.Callers[who].Shared {
		return t, nil, x.exclusion(t)
	}
	a.entries++
	token := a.token + a.entries
	if token <= t.largest {
		return t, nil, fmt.Errorf("token: caller %d enters with a token that is not larger than each before", who)
	}
	t.largest = token
	x.settle(t)
	return t, nil, x.exclusion(t)
}

// settle follows what is true in any case.
func (x *search) settle(t *state) {
	for i := range x.Callers {
		who, a := int8(i), &t.attempts[i]
		if a.phase == holding && a.trust <= t.now {
			a.phase = lost
		}
		if a.phase == unused && a.trust <= t.now {
			a.phase = leaving // nobody's loss
		}
		if a.grant >= 0 && (a.grant+x.Claim <= t.now || a.phase != fresh && a.phase != waiting && a.phase != placed) {
			a.grant = -1
		}
		if a.phase == crashed && !x.remains(t, who) {
			*a = attempt{old: -1, grant: -1}
		}
		if x.Callers[i].Part {
			x.settlePart(t, who)
		}
	}
}

// settlePart lets the two parts of a group leave together.
func (x *search) settlePart(t *state, who int8) {
	for _, pair := range [][2]int8{{who - 1, who}, {who, who - 1}} {
		one, other := &t.attempts[pair[0]], &t.attempts[pair[1]]
		gone := one.phase == leaving || one.phase == idle || one.phase == crashed
		if gone && other.phase != leaving && other.phase != idle && other.phase != crashed && other.out.op == noOp {
			other.phase, other.trust = leaving, 0
		}
	}
}

// mayBegin reports whether a caller may begin an attempt: not the second of a group, nor one that
// had a ticket evicted lately.
func (x *search) mayBegin(s *state, who int8) bool {
	c := &x.Callers[who]
	remembered := x.Evicts && slices.ContainsFunc(s.server.records, func(r memory.Record) bool {
		return r.State == memory.RecordEvicted && callerOf(r.ID) == int(who) && r.Until > serverTime(s.now)
	})
	return !c.Part && !remembered && (c.Group == 0 || s.attempts[who+1].phase == idle)
}

// remains reports whether anything is left of a caller's tickets, but for a min hold.
func (x *search) remains(t *state, who int8) bool {
	return slices.ContainsFunc(t.late, func(r Request) bool { return r.Who == who }) ||
		slices.ContainsFunc(t.server.records, func(r memory.Record) bool {
			return r.ID != "" && callerOf(r.ID) == int(who) && r.Until > serverTime(t.now) &&
				(r.State != memory.RecordMinHeld && r.State != memory.RecordEvicted)
		})
}

package explore

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

const (
	masters  = 3
	majority = 2
)

// A vote is what a round has from one master, or whether it has given back there.
type vote byte

const (
	open vote = iota
	yes
	no
)

// A master is one server of a quorum.
type master struct {
	*server
	since int64 // the tick at which its memory began
}

// A member is what one caller of a quorum knows.
type member struct {
	phase    phase
	number   int8
	renewing bool
	trust    int64
	until    int64 // as of an attempt
	sent     int64 // the tick at which its round began
	votes    [masters]vote
}

// A quorumState is one state of a world of three masters and two callers. One master at a time may
// forget all.
type quorumState struct {
	now     int64
	masters [masters]master
	members [2]member
	late    []Request
}

// A quorum goes through the states of a world of three masters.
type quorum struct{ *search }

func (q *quorum) start() *quorumState {
	q.now = begin
	out := &quorumState{now: first}
	for i := range out.masters {
		out.masters[i].server = q.empty()
	}
	return out
}

// empty returns a server that knows nothing.
func (q *quorum) empty() *server {
	s := memory.NewAt(protocol.Features{}, q.clock)
	for range q.Callers {
		s.Connect(q.World.Name)
	}
	return &server{Server: s}
}

// counts reports whether a master counts: whatever it may have forgotten is over.
func (q *quorum) counts(s *quorumState, node int8) bool {
	return s.now-s.masters[node].since >= q.TTL
}

func (q *quorum) moves(all []move, s *quorumState) []move {
	all = append(all, move{kind: pass})
	for i := range s.members {
		all = q.wishes(all, s, int8(i))
	}
	for i := range s.late {
		all = append(all, move{kind: arrive, who: s.late[i].Who, arg: int8(i)})
	}
	for node := range int8(masters) {
		if others := q.counts(s, (node+1)%masters) && q.counts(s, (node+2)%masters); q.Forgets && others {
			all = append(all, move{kind: forget, arg: node})
		}
	}
	return all
}

// wishes appends what a caller may do: something as a whole, or at one of the masters.
func (q *quorum) wishes(all []move, s *quorumState, who int8) []move {
	m := &s.members[who]
	kind := ask // also as the repair of a master that lacks the hold
	switch {
	case m.phase == idle:
		return append(all, move{kind: start, who: who})
	case m.phase == fresh:
		all = append(all, move{kind: abandon, who: who})
	case m.phase == holding && m.renewing:
	case m.phase == holding:
		all = append(all, move{kind: renew, who: who}, move{kind: release, who: who})
	case m.phase == lost:
		return append(all, move{kind: release, who: who})
	case m.phase == leaving:
		kind = free
	}
	for node := range int8(masters) {
		if m.votes[node] != open {
			continue
		}
		all = append(all, move{kind: kind, who: who, arg: node},
			move{kind: kind, who: who, arg: node, fate: unanswered})
		if len(s.late) < q.Late {
			all = append(all, move{kind: kind, who: who, arg: node, fate: late})
		}
	}
	return all
}

func (q *quorum) apply(s *quorumState, m move) (*quorumState, *Request, error) {
	t := *s
	caller := &t.members[m.who]
	var asked *Request
	switch m.kind {
	case pass:
		q.pass(&t)
	case start:
		*caller = member{phase: fresh, number: q.unused(&t, m.who), sent: t.now}
	case renew:
		caller.renewing, caller.sent, caller.votes = true, t.now, [masters]vote{}
	case abandon, release:
		caller.phase, caller.trust, caller.votes = leaving, 0, [masters]vote{}
	case forget:
		t.masters[m.arg] = master{q.empty(), t.now}
	case ask, free:
		asked = q.ask(&t, m)
	case arrive:
		r := t.late[m.arg]
		t.late = slices.Delete(slices.Clone(t.late), int(m.arg), int(m.arg)+1)
		q.send(&t, &r)
		asked = &r
	}
	for i := range t.members {
		if a := &t.members[i]; a.phase == holding && a.trust <= t.now {
			a.phase, a.renewing, a.votes = lost, false, [masters]vote{}
		}
	}
	return &t, asked, q.judge(&t)
}

// pass lets a tick pass. A round ends with its time.
func (q *quorum) pass(t *quorumState) {
	t.now++
	for i := range t.members {
		a := &t.members[i]
		if a.phase == fresh && a.sent+patience < t.now {
			a.phase, a.votes = leaving, [masters]vote{}
		}
		if a.renewing && a.sent+patience < t.now {
			a.renewing, a.votes = false, [masters]vote{}
		}
	}
	t.late = slices.DeleteFunc(slices.Clone(t.late), func(r Request) bool { return q.ineffective(&r, t.now) })
}

// ask sends what a caller has to say to one master, and counts the answer.
func (q *quorum) ask(t *quorumState, m move) *Request {
	a := &t.members[m.who]
	r := Request{Who: m.who, op: opAsk, number: a.number, old: -1, node: m.arg, sent: t.now}
	switch {
	case a.phase == fresh:
		r.sent = a.sent
	case a.phase == leaving:
		r.op = opFree
	case a.renewing:
		r.op = opRenew
	}
	if m.fate != answered && r.op == opAsk {
		a.until = max(a.until, r.sent+patience)
	}
	if m.fate == late {
		if r.op != opAsk {
			r.sent = 0
		}
		t.late = append(slices.Clone(t.late), r)
		if r.op != opFree {
			a.votes[m.arg] = no
		}
		return nil
	}
	q.send(t, &r)
	q.read(t, a, &r, m.fate == answered)
	return &r
}

// read counts the answer of a master, if it came.
func (q *quorum) read(t *quorumState, a *member, r *Request, came bool) {
	switch {
	case r.op == opFree:
		if came && t.now > a.until {
			a.votes[r.node] = yes
		}
		if a.votes == [masters]vote{yes, yes, yes} {
			*a = member{}
		}
	case a.phase == fresh || a.renewing:
		a.votes[r.node] = no
		if came && r.answer == held && q.counts(t, r.node) {
			a.votes[r.node] = yes
		}
		q.decide(t, a)
	}
}

// decide ends a round that a majority has confirmed.
func (q *quorum) decide(t *quorumState, a *member) {
	confirmed := 0
	for _, v := range a.votes {
		if v == yes {
			confirmed++
		}
	}
	if end := q.trustEnd(&Request{sent: a.sent}, t.now); confirmed >= majority && end > t.now {
		a.phase, a.renewing, a.trust, a.votes = holding, false, max(a.trust, end), [masters]vote{}
	}
}

// send sends a request to its master.
func (q *quorum) send(t *quorumState, r *Request) {
	q.search.now = begin.Add(ticks(t.now))
	next := t.masters[r.node].Clone()
	r.At = t.now
	r.answer, _ = q.World.send(next.Client(int(r.Who)), r, begin)
	records, _ := next.Records(nil)
	t.masters[r.node].server = &server{next, records}
}

// unused is as that of a search.
func (q *quorum) unused(t *quorumState, who int8) int8 {
	for number := range int8(10) {
		used := slices.ContainsFunc(t.late, func(r Request) bool { return r.Who == who && r.number == number })
		for i := range t.masters {
			used = used || slices.ContainsFunc(t.masters[i].records, func(r memory.Record) bool {
				return r.ID == ids[who][number]
			})
		}
		if !used {
			return number
		}
	}
	panic("all tickets are in use")
}

// judge is the rules of a search, as far as a quorum has them.
func (q *quorum) judge(t *quorumState) error {
	acting := 0
	for who := range t.members {
		a := &t.members[who]
		if a.phase == holding && t.now < a.trust {
			acting++
		}
		for i := range t.masters {
			for _, r := range t.masters[i].records {
				if r.ID != "" && callerOf(r.ID) == who && r.Until > serverTime(t.now) &&
					(a.phase == idle || a.number != numberOf(r.ID)) {
					return fmt.Errorf("left: ticket %s is at master %d, and its caller has done with it", r.ID, i)
				}
			}
		}
	}
	if acting > 1 {
		return fmt.Errorf("overlap: both callers are trusted at one moment")
	}
	return nil
}

// calmEnd has nothing to judge: holds end by themselves, and there is no queue.
func (q *quorum) calmEnd(*quorumState) error { return nil }

func (q *quorum) describe(s *quorumState, m move) string {
	text := describe(s.now, m)
	switch m.kind {
	case ask, free:
		text += fmt.Sprintf(", master %d", m.arg)
	case forget:
		text = fmt.Sprintf("tick %d: master %d forgets", s.now-first, m.arg)
	}
	return text
}

// key is as that of a search. The callers change places, and so do the masters.
func (q *quorum) key(s *quorumState) key {
	var best []byte
	for _, order := range [][2]int8{{0, 1}, {1, 0}} {
		var text []byte
		for _, who := range order {
			a := &s.members[who]
			text = append(text, byte(a.phase), bit(a.renewing), left(a.trust, s.now), left(a.until+1, s.now),
				left(a.sent+q.TTL, s.now))
		}
		var parts [masters][]byte
		for node := range int8(masters) {
			parts[node] = q.encodeMaster(s, node, order)
		}
		slices.SortFunc(parts[:], bytes.Compare)
		for _, part := range parts {
			text = append(append(text, 255), part...)
		}
		if best == nil || bytes.Compare(text, best) < 0 {
			best = text
		}
	}
	sum := sha256.Sum256(best)
	return key(sum[:16])
}

// encodeMaster returns all that is about one master.
func (q *quorum) encodeMaster(s *quorumState, node int8, order [2]int8) []byte {
	text := []byte{left(s.masters[node].since+q.TTL, s.now)}
	for _, who := range order {
		a := &s.members[who]
		text = append(text, byte(a.votes[node]))
		for _, r := range s.masters[node].records {
			if rest := left(ticksOf(r.Until), s.now); r.ID != "" && callerOf(r.ID) == int(who) && rest > 0 {
				text = append(text, 1, bit(numberOf(r.ID) == a.number), rest)
			}
		}
		var requests [][]byte
		for i := range s.late {
			if r := &s.late[i]; r.Who == who && r.node == node {
				requests = append(requests, appendRequest([]byte{2, bit(r.number == a.number)}, r, s.now))
			}
		}
		slices.SortFunc(requests, bytes.Compare)
		text = append(text, bytes.Join(requests, nil)...)
	}
	return text
}

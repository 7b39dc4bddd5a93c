package quorum

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A reply is one node's answer to one round.
type reply struct {
	node   *node
	status byte // see ask.lua; 0: none
	facts  facts
	counts bool
	err    error

	first, final int64 // held

	remaining        time.Duration // else
	holders, waiters int
	holder           protocol.ID
	token            int64 // of the holder; 0: none is accepted here
	party            protocol.Party

	by string // of what was taken over: the label of the caller that did
}

// won tells whether the node keeps the name for us.
func (a *reply) won() bool { return a.status == 'H' || a.status == 'T' }

// unknown tells whether the request may take effect yet.
func (a *reply) unknown() bool {
	failure, ok := a.err.(*protocol.Failure)
	return ok && failure.Unknown
}

// round asks all nodes once, with one token for all, and returns as soon as it is decided. Answers that come later are
// looked after: what they won is given back unless the name is held.
func (t *taking) round(ctx context.Context, first int64) *tally {
	p := t.r.p
	number := p.rounds.Add(1)
	replies := make(chan *reply, len(p.nodes))
	for _, n := range p.nodes {
		n.depart(t.ask.Ticket.ID)
		before := n.behind(t.r.spec.Name)
		p.run(func() {
			reply := &reply{node: n}
			if follow(before, t.ask.Deadline) {
				reply = t.ask1(n, number, first)
			} else {
				reply.err = t.r.behind(n)
			}
			n.arrive(t.ask.Ticket.ID)
			replies <- reply
		})
	}
	out := &tally{r: t.r, need: p.need, nodes: len(p.nodes), pending: len(p.nodes)}
	for out.judge(); out.verdict == open; out.judge() {
		select {
		case reply := <-replies:
			out.take(reply)
		case <-ctx.Done():
			out.verdict, out.err = failed, t.r.failed("lock", protocol.EndOf(ctx))
		}
		if out.verdict != open {
			break
		}
	}
	if out.verdict == failed && ctx.Err() == nil {
		out.hearOut(replies)
	}
	early, late, fate := out.replies, out.pending, t.fate
	p.run(func() {
		<-fate.known
		for _, reply := range early {
			t.after(reply, number, fate.held)
		}
		for range late {
			t.after(<-replies, number, fate.held)
		}
	})
	return out
}

// courtesy is how long the nodes that live are given to say so, once it is clear that there is no majority.
const courtesy = 50 * time.Millisecond

// hearOut completes an error with the answers of those who were not needed for it.
func (t *tally) hearOut(replies <-chan *reply) {
	timer := time.NewTimer(courtesy)
	defer timer.Stop()
	for t.pending > 0 {
		select {
		case reply := <-replies:
			t.take(reply)
		case <-timer.C:
			return
		}
	}
	if t.foreign > t.nodes-t.need {
		t.err = t.foreigner()
	}
}

// after looks after one answer once it is known what became of the Ask.
func (t *taking) after(a *reply, round int64, held bool) {
	if t.ask.Release != nil && a.status == 0 {
		// What it gave back may still be there: at the latest when the request can take effect no more, it goes.
		due := time.Now()
		if a.unknown() {
			due = t.ask.Deadline
		}
		a.node.owe(debt{r: t.r, id: t.ask.Release.ID, round: endless, how: 'f', waiter: t.r.waiter(*t.ask.Release),
			due: due, until: t.ask.Deadline.Add(t.ask.TTL)})
	}
	if held {
		if a.status == 'B' && t.ask.Join {
			// It is known there as one who waits. The release tells that it does not, if it comes before.
			a.node.owe(debt{r: t.r, id: t.ask.Ticket.ID, how: 'p', waiter: t.r.waiter(t.ask.Ticket), due: t.ask.Deadline.Add(time.Second),
				until: time.Now().Add(placeLife)})
		}
		return
	}
	how := byte('q')
	if t.owner != "" {
		how = 'u'
	}
	d := debt{r: t.r, id: t.ask.Ticket.ID, round: round, how: how, due: time.Now(), until: t.ask.Deadline.Add(t.ask.TTL)}
	switch {
	case a.won():
		a.node.owe(d)
	case a.unknown():
		d.due = t.ask.Deadline.Add(time.Millisecond)
		a.node.owe(d)
	}
}

// behind is the failure of an ask that was not sent to a node, as it must not overtake what is on its way there.
func (r *resource) behind(n *node) error {
	return &protocol.Failure{Op: "lock", Name: r.spec.Name, Node: nodeName(n.index), Reason: protocol.NoAnswer, Err: errBehind}
}

// ask1 asks one node. Where the request was late, by a clock that was set since or has drifted over a long silence, it is
// asked what its clock shows, and once more.
func (t *taking) ask1(n *node, round, first int64) *reply {
	r, ask := t.r, &t.ask
	mode, release := "t", ""
	switch {
	case t.repair:
		mode = "r"
	case ask.Join:
		mode = "j"
	}
	if ask.Release != nil {
		release = string(ask.Release.ID)
	}
	out := &reply{node: n}
	if release != "" && !n.await(ask.Release.ID, ask.Deadline) {
		out.err = r.behind(n)
		return out
	}
	for again := false; ; again = true {
		notAfter, err := n.notAfter(ask.Deadline)
		if err != nil {
			out.err = err
			return out
		}
		sent := time.Now()
		text, err := n.ask(&r.p.scripts.ask, r.spec.Name, ask.Deadline, []any{nil, nil, 4, r.state, r.waiting, r.watching, r.p.factsKey(),
			string(ask.Ticket.ID), r.mode, r.payloadOf(ask.Ticket), r.spec.Owner, wire.Millis(ask.TTL), notAfter, mode, wire.Digits16(first),
			wire.Digits16(first + ask.Ticket.Block - 1), wire.Digits16(round), r.field, release, r.waiter(ask.Ticket),
			t.waited.Microseconds(), r.life, t.owner, t.token, r.p.config.MaxTTL.Milliseconds()})
		received := time.Now()
		if err != nil {
			out.err = err
			return out
		}
		if text[0] == 'L' {
			if !again && received.Before(ask.Deadline) {
				if _, out.err = n.meet(ask.Deadline, "", ""); out.err == nil {
					continue
				}
				return out
			}
			out.err = &protocol.Failure{Op: "lock", Name: r.spec.Name, Node: nodeName(n.index), Reason: protocol.NoAnswer, Err: errTooLate}
			return out
		}
		if !out.read(text) {
			out.err = n.unreadable("lock", r.spec.Name, text)
			return out
		}
		learn(&r.p.known[r.bucket], out.facts.last)
		out.counts = n.heard(&out.facts, sent, received, ask.Deadline)
		return out
	}
}

// read takes a reply apart; false when it is none of ours.
func (a *reply) read(text string) bool {
	f, rest, ok := head(text)
	if !ok {
		return false
	}
	a.facts = f
	switch text[0] {
	case 'H':
		var ok1, ok2 bool
		if len(rest) == 32 {
			a.first, ok1 = wire.Number(rest[:16])
			a.final, ok2 = wire.Number(rest[16:])
		}
		ok = ok1 && ok2
	case 'B':
		fields := strings.SplitN(rest, "|", 4)
		if len(fields) != 4 {
			return false
		}
		var numbers [3]int64
		for i := range numbers {
			var fine bool
			numbers[i], fine = wire.Number(fields[i])
			ok = ok && fine
		}
		a.remaining, a.holders, a.waiters = time.Duration(numbers[0])*time.Millisecond, int(numbers[1]), int(numbers[2])
		if fields[3] != "" && ok {
			a.holder, a.token, a.party, ok = holderOf(fields[3])
		}
	case 'R':
		a.by, ok = takenBy(rest)
	case 'T', 'Y', 'U':
	default:
		return false
	}
	if ok {
		a.status = text[0]
	}
	return ok
}

package quorum

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A reply is one node's answer to one round.
type reply struct {
	node   *node
	status byte // see ask.lua; 0: none
	facts  facts
	counts bool
	err    error

	first, final int64 // if it holds

	remaining        time.Duration // otherwise
	holders, waiters int
	holder           protocol.ID
	token            int64 // of the holder; 0: none is accepted here
	party            protocol.Party

	by string // if the hold was broken: the label of the caller that did it
}

// won tells whether the node keeps the name for us.
func (a *reply) won() bool { return a.status == 'H' || a.status == 'T' }

// unknown tells whether the request may take effect yet.
func (a *reply) unknown() bool {
	failure, ok := a.err.(*protocol.Failure)
	return ok && failure.Unknown
}

// round asks all nodes once, with one token for all, and returns as soon as it is decided. Answers
// that come later are handled in the background: what they won is given back unless the name is
// held.
func (t *acquisition) round(ctx context.Context, first int64) *tally {
	number := t.r.p.rounds.Add(1)
	replies := t.sendRound(number, first)
	out := &tally{r: t.r, need: t.r.p.need, nodes: len(t.r.p.nodes), pending: len(t.r.p.nodes)}
	for out.judge(); out.verdict == open; {
		select {
		case reply := <-replies:
			out.take(reply)
			out.judge()
		case <-ctx.Done():
			out.verdict, out.err = failed, t.r.failed("lock", protocol.EndOf(ctx))
		}
	}
	if out.verdict == failed && ctx.Err() == nil {
		out.completeAnswers(replies)
	}
	early, late, outcome := out.replies, out.pending, t.outcome
	t.r.p.run(func() {
		<-outcome.known
		for _, reply := range early {
			t.cleanUpAfter(reply, number, outcome.held)
		}
		for range late {
			t.cleanUpAfter(<-replies, number, outcome.held)
		}
	})
	return out
}

// sendRound asks all nodes. At each node the ask waits for the releases of the name that are on
// their way.
func (t *acquisition) sendRound(number, first int64) chan *reply {
	p := t.r.p
	replies := make(chan *reply, len(p.nodes))
	for _, n := range p.nodes {
		n.askSent(t.ask.Ticket.ID)
		before := n.releasesBefore(t.r.spec.Name)
		p.run(func() {
			reply := &reply{node: n}
			if closedBy(before, t.ask.Deadline) {
				reply = t.askAt(n, number, first)
			} else {
				reply.err = t.r.overtakes(n)
			}
			n.askDone(t.ask.Ticket.ID)
			replies <- reply
		})
	}
	return replies
}

// lateAnswers is how long the nodes that live are given to say so, once it is clear that there is
// no majority.
const lateAnswers = 50 * time.Millisecond

// completeAnswers completes an error with the answers that were not needed for it.
func (t *tally) completeAnswers(replies <-chan *reply) {
	timer := time.NewTimer(lateAnswers)
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

// cleanUpAfter handles one answer once it is known what became of the Ask.
func (t *acquisition) cleanUpAfter(a *reply, round int64, held bool) {
	if t.ask.Release != nil && a.status == 0 {
		// The hold that it gave back may still be there. That hold goes when the request can take
		// effect no more, at the latest.
		c := t.r.freeOf(*t.ask.Release)
		c.until = t.ask.Deadline.Add(t.ask.TTL)
		if a.unknown() {
			c.notBefore = t.ask.Deadline
		}
		a.node.addCleanup(c)
	}
	if held {
		if a.status == 'B' && t.ask.Join {
			// The node knows it as one that waits. The release tells that it does not, if it comes
			// before.
			c := t.r.freeOf(t.ask.Ticket)
			c.how, c.round, c.notBefore = freePlace, 0, t.ask.Deadline.Add(time.Second)
			a.node.addCleanup(c)
		}
		return
	}
	c := cleanup{resource: t.r, id: t.ask.Ticket.ID, round: round, how: freeQuietly, notBefore: time.Now(), until: t.ask.Deadline.Add(t.ask.TTL)}
	switch {
	case a.won():
		a.node.addCleanup(c)
	case a.unknown():
		c.notBefore = t.ask.Deadline.Add(time.Millisecond)
		a.node.addCleanup(c)
	}
}

// overtakes is the failure of an ask that was not sent to a node, as it must not overtake what is
// on its way there.
func (r *resource) overtakes(n *node) error {
	return &protocol.Failure{Op: "lock", Name: r.spec.Name, Node: nodeName(n.index), Reason: protocol.NoAnswer, Err: errEarlier}
}

// askAt asks one node.
func (t *acquisition) askAt(n *node, round, first int64) *reply {
	r, ask := t.r, &t.ask
	out := &reply{node: n}
	if ask.Release != nil && !n.awaitAsks(ask.Release.ID, ask.Deadline) {
		out.err = r.overtakes(n)
		return out
	}
	if n.twin.Load() != nil { // the server is asked at another node, and takes a token from one of them alone
		if out.facts, out.err = n.meet(ask.Deadline, "", ""); out.err != nil || out.facts.same != nil {
			return out
		}
	}
	text, sent, received, err := n.askInTime(&r.p.scripts.ask, r.spec.Name, ask.Deadline, func(notAfter string) []any {
		return t.words(notAfter, round, first)
	})
	if err != nil {
		out.err = err
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

// words are the command of a round: see ask.lua.
func (t *acquisition) words(notAfter string, round, first int64) []any {
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
	return []any{nil, nil, 4, r.state, r.waiting, r.watching, r.p.factsKey(),
		string(ask.Ticket.ID), r.mode, r.payloadOf(ask.Ticket), r.spec.Owner, wire.Millis(ask.TTL), notAfter, mode, wire.Digits16(first),
		wire.Digits16(first + ask.Ticket.Block - 1), wire.Digits16(round), r.field, release, r.waiter(ask.Ticket),
		t.waited.Microseconds(), r.life, r.p.config.MaxTTL.Milliseconds()}
}

// read takes a reply apart; false if it is none of ours.
func (a *reply) read(text string) bool {
	f, rest, ok := head(text)
	if !ok {
		return false
	}
	a.facts = f
	switch text[0] {
	case 'H':
		ok = a.readTokens(rest)
	case 'B':
		ok = a.readBusy(rest)
	case 'R':
		a.by = rest
	case 'T', 'Y', 'U':
	default:
		return false
	}
	if ok {
		a.status = text[0]
	}
	return ok
}

func (a *reply) readTokens(text string) bool {
	if len(text) != 32 {
		return false
	}
	var ok1, ok2 bool
	a.first, ok1 = wire.Number(text[:16])
	a.final, ok2 = wire.Number(text[16:])
	return ok1 && ok2 && 0 <= a.first && a.first <= a.final
}

func (a *reply) readBusy(text string) bool {
	fields := strings.SplitN(text, "|", 4)
	if len(fields) != 4 {
		return false
	}
	var numbers [3]int64
	for i := range numbers {
		var ok bool
		if numbers[i], ok = wire.Number(fields[i]); !ok {
			return false
		}
	}
	a.remaining, a.holders, a.waiters = time.Duration(numbers[0])*time.Millisecond, int(numbers[1]), int(numbers[2])
	if fields[3] == "" {
		return true
	}
	var ok bool
	a.holder, a.token, a.party, ok = holderOf(fields[3])
	return ok
}

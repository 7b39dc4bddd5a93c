package quorum

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// breakTimeout bounds a Break whose context has no earlier deadline.
const breakTimeout = time.Second

// Break implements protocol.Operators. It asks all nodes to make a remainder of the hold. A
// majority of those that count must have done so, by this Break or an earlier one. Otherwise what
// this one did is taken back everywhere, in the background. A hold cannot be ended by force: no
// moment is the same at all nodes.
func (p *Protocol) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	if b.Force {
		return false, &protocol.Failure{Op: "break", Name: name, Reason: protocol.Unsupported, Err: protocol.ErrNoForce}
	}
	if b.Token <= 0 || b.Token >= 1<<53 { // no hold has it
		return false, nil
	}
	r := p.bind(protocol.Spec{Name: name, Kind: b.Kind})
	if b.Kind == 0 {
		r.mode = ""
	}
	id, deadline := newID(), within(ctx, breakTimeout)
	replies := r.sendBreak(id, b, deadline)
	out := &breakTally{r: r, pending: len(p.nodes), answers: p.noAnswers(), marked: map[protocol.ID]int{}}
	for !out.decide() {
		select {
		case a := <-replies:
			out.take(a)
		case <-ctx.Done():
			out.decided = true
			out.err = &protocol.Failure{Op: "break", Name: name, Reason: protocol.NoAnswer, Unknown: true, Err: protocol.EndOf(ctx)}
		}
	}
	if !out.done {
		out.takeBack(id, deadline, replies)
	}
	return out.done, out.err
}

// newID is a fresh id.
func newID() protocol.ID {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return protocol.ID(base64.RawURLEncoding.EncodeToString(bits[:]))
}

// A breakReply is one node's answer to a Break.
type breakReply struct {
	node   *node
	counts bool
	facts  facts
	hold   protocol.ID // the hold that is broken there; empty: there is none
	err    error
}

// sendBreak asks all nodes at the same time. Each gives one answer by the deadline, and the channel
// has room for all. The cleanup that takes the Break back at a node waits for that answer.
func (r *resource) sendBreak(id protocol.ID, b protocol.Break, deadline time.Time) <-chan *breakReply {
	replies := make(chan *breakReply, len(r.p.nodes))
	for _, n := range r.p.nodes {
		n.askSent(id)
		r.p.run(func() {
			reply := r.breakAt(n, id, b, deadline)
			n.askDone(id)
			replies <- reply
		})
	}
	return replies
}

// breakAt asks one node.
func (r *resource) breakAt(n *node, id protocol.ID, b protocol.Break, deadline time.Time) *breakReply {
	out := &breakReply{node: n}
	text, sent, received, err := n.askInTime(&r.p.scripts.breaks, r.spec.Name, deadline, func(notAfter string) []any {
		return []any{nil, nil, 2, r.state, r.p.factsKey(), r.mode, wire.Digits16(b.Token), string(id), b.By, notAfter}
	})
	if err != nil {
		out.err = err
		return out
	}
	f, rest, ok := head(text)
	switch {
	case ok && text[0] == 'X' && len(rest) == idSize:
		out.hold = protocol.ID(rest)
	case ok && text[0] == '0' && rest == "":
	default:
		out.err = n.unreadable("break", r.spec.Name, text)
		return out
	}
	out.facts = f
	out.counts = n.heard(&out.facts, sent, received, deadline)
	return out
}

// A breakTally counts the answers to a Break. Only the goroutine of Break uses it.
type breakTally struct {
	r       *resource
	pending int
	answers []Node

	replies   []*breakReply
	marked    map[protocol.ID]int // at how many nodes that count a hold is broken
	none      int                 // how many nodes that count know no such hold
	foreign   int
	foreigner error

	decided, done bool
	err           error
}

func (t *breakTally) take(a *breakReply) {
	t.pending--
	t.replies = append(t.replies, a)
	answer := t.r.p.answerOf(a.node, a.facts, a.counts, a.err)
	var foreign *protocol.Foreign
	switch {
	case errors.As(a.err, &foreign):
		t.foreign++
		t.foreigner = a.err
	case a.err != nil || !a.counts:
	case a.hold != "":
		t.marked[a.hold]++
		answer.Answer = "broken"
	default:
		t.none++
		answer.Answer = "no such hold"
	}
	t.answers[a.node.index] = answer
}

// decide tells whether the answers so far decide, or all have come.
func (t *breakTally) decide() bool {
	if t.decided {
		return true
	}
	p, most := t.r.p, 0
	for _, n := range t.marked {
		most = max(most, n)
	}
	switch {
	case most >= p.need: // its holder gets no majority of yes any more
		t.done = true
	case t.none >= p.need: // it is nobody's lease
	case t.foreign > len(p.nodes)-p.need:
		t.err = t.foreigner
	case t.pending == 0:
		t.err = p.noMajority("break", t.r.spec.Name, t.answers)
		var failure *protocol.Failure
		if errors.As(t.err, &failure) && most > 0 {
			failure.Unknown = true // its holder may have been told
		}
	default:
		return false
	}
	t.decided = true
	return true
}

// takeBack takes back what a Break has done, or may yet do, at each node.
func (t *breakTally) takeBack(id protocol.ID, deadline time.Time, replies <-chan *breakReply) {
	early, late := t.replies, t.pending
	t.r.p.run(func() {
		for _, a := range early {
			t.r.takeBackAt(a, id, deadline)
		}
		for range late {
			t.r.takeBackAt(<-replies, id, deadline)
		}
	})
}

func (r *resource) takeBackAt(a *breakReply, id protocol.ID, deadline time.Time) {
	c := cleanup{resource: r, id: id, round: endless, how: freeBreak, notBefore: time.Now(), until: deadline.Add(r.spec.Life)}
	var failure *protocol.Failure
	switch {
	case a.err == nil && a.hold == "": // there was nothing to end
		return
	case errors.As(a.err, &failure) && failure.Unknown:
		c.notBefore = deadline.Add(time.Millisecond)
	case a.err != nil:
		return
	}
	a.node.addCleanup(c)
}

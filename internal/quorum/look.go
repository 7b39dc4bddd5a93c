package quorum

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A lookReply is what one node says of a name.
type lookReply struct {
	node   *node
	facts  facts
	counts bool
	err    error
	id     protocol.ID
	protocol.Standing
}

// A claim is a hold that a node names, with its token there.
type claim struct {
	id    protocol.ID
	token int64
}

// Look implements protocol.Resource: the holder at a majority holds, and its token is the one that
// a majority accepted. A name on which no majority agrees, because it changes hands just now, is
// held by nobody.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	deadline := within(ctx, time.Second)
	watching := ""
	if watcher != nil && !watcher.Deaf {
		watching = string(watcher.ID) + r.p.channel
	}
	// A hold whose token is not agreed on yet is in the middle of its rounds, or one of its nodes
	// does not answer.
	const tries = 3
	for try := 1; ; try++ {
		standing, agreed, err := r.lookOnce(ctx, watching, deadline)
		if agreed || err != nil || try == tries || !r.p.pause(ctx, try) {
			return standing, err
		}
	}
}

// within is the deadline of ctx, but no later than after so long.
func within(ctx context.Context, limit time.Duration) time.Time {
	deadline := time.Now().Add(limit)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		return end
	}
	return deadline
}

// lookOnce asks all nodes once. What is not agreed may be otherwise by the next try.
func (r *resource) lookOnce(ctx context.Context, watching string, deadline time.Time) (standing protocol.Standing, agreed bool, err error) {
	p := r.p
	replies := r.sendLook(watching, deadline)
	out := &lookTally{r: r, answers: p.noAnswers(), holders: map[protocol.ID]int{}, claims: map[claim]int{}}
	for range p.nodes {
		select {
		case a := <-replies:
			if standing, agreed, err := out.take(a); agreed || err != nil {
				return standing, agreed, err
			}
		case <-ctx.Done():
			return standing, false, &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
		}
	}
	return out.judge()
}

// sendLook asks all nodes.
func (r *resource) sendLook(watching string, deadline time.Time) <-chan *lookReply {
	p := r.p
	replies := make(chan *lookReply, len(p.nodes))
	for _, n := range p.nodes {
		if watching == "" {
			p.run(func() { replies <- r.lookAt(n, watching, deadline) })
			continue
		}
		id := protocol.ID(watching[:idSize])
		n.askSent(id)
		p.run(func() {
			a := r.lookAt(n, watching, deadline)
			n.askDone(id)
			replies <- a
		})
	}
	return replies
}

// A lookTally counts the answers to a look.
type lookTally struct {
	r       *resource
	answers []Node
	foreign int

	counted []*lookReply        // of the nodes that count
	holders map[protocol.ID]int // how many of them name a holder
	claims  map[claim]int       // and its token
}

// take takes one answer. A majority agrees on a hold with its token, on nobody, or on a remainder.
func (t *lookTally) take(a *lookReply) (standing protocol.Standing, agreed bool, err error) {
	p := t.r.p
	t.answers[a.node.index] = p.answerOf(a.node, a.facts, a.counts, a.err)
	var other *protocol.Foreign
	if errors.As(a.err, &other) {
		if t.foreign++; t.foreign > len(p.nodes)-p.need {
			return standing, false, other
		}
	}
	if !a.counts {
		return standing, false, nil
	}
	t.counted = append(t.counted, a)
	c := claim{a.id, a.Token}
	t.holders[a.id]++
	t.claims[c]++
	if t.claims[c] >= p.need && (a.Token != 0 || a.id == "") || t.holders[a.id] >= p.need && leftover(a.id) {
		return a.Standing, true, nil
	}
	return standing, false, nil
}

// judge decides when all nodes have answered or failed, and no majority agreed on a token.
func (t *lookTally) judge() (standing protocol.Standing, agreed bool, err error) {
	p := t.r.p
	silent := len(p.nodes) - len(t.counted)
	if len(t.counted) < p.need {
		return standing, false, p.noMajority("look", t.r.spec.Name, t.answers)
	}
	var best *lookReply // with the largest token, of the hold that a majority names
	for _, a := range t.counted {
		if t.holders[a.id] >= p.need && (best == nil || a.Token > best.Token) {
			best = a
		}
	}
	switch {
	case best == nil:
		return protocol.Standing{Server: p.now()}, true, nil
	case best.Token != 0 && t.claims[claim{best.id, best.Token}]+silent >= p.need:
		return best.Standing, false, nil // the nodes that do not answer may have accepted it
	}
	return protocol.Standing{Server: p.now()}, false, nil
}

// Unwatch implements protocol.Resource. A node that does not answer forgets the watcher by itself.
func (r *resource) Unwatch(ctx context.Context, watcher protocol.Ticket) error {
	deadline := within(ctx, time.Second)
	answers := make(chan error, len(r.p.nodes))
	for _, n := range r.p.nodes {
		r.p.run(func() {
			n.awaitAsks(watcher.ID, deadline) // a look that comes later would leave the watcher
			_, err := n.ask(&r.p.scripts.look, r.spec.Name, deadline, []any{nil, nil, 4, r.state, r.waiting, r.watching, r.p.factsKey(),
				r.mode, string(watcher.ID) + r.p.channel, r.life, "w"})
			answers <- err
		})
	}
	failures := 0
	for i := range r.p.nodes {
		select {
		case err := <-answers:
			if err != nil {
				if failures++; failures > len(r.p.nodes)-r.p.need {
					return err
				}
			}
		case <-ctx.Done():
			return &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
		}
		if i+1-failures >= r.p.need {
			return nil
		}
	}
	return nil
}

func (r *resource) lookAt(n *node, watcher string, deadline time.Time) *lookReply {
	out, sent := &lookReply{node: n}, time.Now()
	text, err := n.ask(&r.p.scripts.look, r.spec.Name, deadline, []any{nil, nil, 4, r.state, r.waiting, r.watching, r.p.factsKey(),
		r.mode, watcher, r.life, ""})
	if err != nil {
		out.err = err
		return out
	}
	if !out.read(text) {
		out.err = n.unreadable("look", r.spec.Name, text)
		return out
	}
	out.counts = n.heard(&out.facts, sent, time.Now(), deadline)
	out.Since = out.Token // see protocol.Standing
	out.Server = out.facts.now
	return out
}

// read takes a reply apart; false if it is none of ours.
func (s *lookReply) read(text string) bool {
	f, rest, ok := head(text)
	if !ok || text[0] != 'S' {
		return false
	}
	s.facts = f
	fields := strings.SplitN(rest, "|", 3)
	if len(fields) != 3 {
		return false
	}
	holders, ok1 := wire.Number(fields[0])
	waiters, ok2 := wire.Number(fields[1])
	s.Holders, s.Waiters = int(holders), int(waiters)
	if !ok1 || !ok2 || holders == 0 {
		return ok1 && ok2
	}
	s.id, s.Token, s.Holder, ok = holderOf(fields[2])
	return ok
}

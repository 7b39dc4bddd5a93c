package quorum

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A sight is what one node says of a name.
type sight struct {
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

// Look implements protocol.Resource: who holds at a majority holds, and its token is the one that a majority accepted. A
// name on which no majority agrees, because it changes hands just now, is held by nobody.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	deadline, ok := ctx.Deadline()
	if limit := time.Now().Add(time.Second); !ok || limit.Before(deadline) {
		deadline = limit
	}
	who := ""
	if watcher != nil && !watcher.NoMessages {
		who = string(watcher.ID) + r.p.channel
	}
	// A hold whose token is not agreed on yet is in the middle of its rounds, or one of its nodes does not answer.
	const tries = 3
	for try := 1; ; try++ {
		standing, settled, err := r.look(ctx, who, deadline)
		if settled || err != nil || try == tries || !r.p.pause(ctx, try) {
			return standing, err
		}
	}
}

// look asks all nodes once. What is not settled may be another by the time of the next look.
func (r *resource) look(ctx context.Context, who string, deadline time.Time) (standing protocol.Standing, settled bool, err error) {
	p := r.p
	sights := make(chan *sight, len(p.nodes))
	for _, n := range p.nodes {
		if who == "" {
			p.run(func() { sights <- r.look1(n, who, deadline) })
			continue
		}
		id := protocol.ID(who[:idSize])
		n.depart(id)
		p.run(func() {
			s := r.look1(n, who, deadline)
			n.arrive(id)
			sights <- s
		})
	}
	said := make([]Node, len(p.nodes))
	for i := range said {
		said[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
	answered, foreign := 0, 0
	named, agree := map[protocol.ID]int{}, map[claim]int{}
	var best *sight // with the largest token, of the hold that a majority names
	var all []*sight
	for pending := len(p.nodes); pending > 0; pending-- {
		var s *sight
		select {
		case s = <-sights:
		case <-ctx.Done():
			return standing, false, &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
		}
		said[s.node.index] = p.said(s.node, s.facts, s.counts, s.err)
		var other *protocol.Foreign
		if errors.As(s.err, &other) {
			if foreign++; foreign > len(p.nodes)-p.need {
				return standing, false, other
			}
		}
		if !s.counts {
			continue
		}
		answered++
		all = append(all, s)
		named[s.id]++
		c := claim{s.id, s.Token}
		agree[c]++
		if agree[c] >= p.need && (s.Token != 0 || s.id == "") || named[s.id] >= p.need && leftover(s.id) {
			return s.Standing, true, nil
		}
	}
	if answered < p.need {
		return standing, false, p.noMajority("look", r.spec.Name, said)
	}
	for _, s := range all {
		if named[s.id] >= p.need && (best == nil || s.Token > best.Token) {
			best = s
		}
	}
	switch {
	case best == nil:
		return protocol.Standing{Server: p.now()}, true, nil
	case best.Token != 0 && agree[claim{best.id, best.Token}]+len(p.nodes)-answered >= p.need:
		return best.Standing, false, nil // those that do not answer may have accepted it
	}
	return protocol.Standing{Server: p.now()}, false, nil
}

// Unwatch implements protocol.Resource. A node that does not answer forgets the watcher by itself.
func (r *resource) Unwatch(ctx context.Context, watcher protocol.Ticket) error {
	deadline, ok := ctx.Deadline()
	if limit := time.Now().Add(time.Second); !ok || limit.Before(deadline) {
		deadline = limit
	}
	answers := make(chan error, len(r.p.nodes))
	for _, n := range r.p.nodes {
		r.p.run(func() {
			n.await(watcher.ID, deadline) // a look that comes later would leave the watcher
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

func (r *resource) look1(n *node, watcher string, deadline time.Time) *sight {
	out, sent := &sight{node: n}, time.Now()
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

// read takes a reply apart; false when it is none of ours.
func (s *sight) read(text string) bool {
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
	who := fields[2]
	if !ok1 || !ok2 || holders == 0 {
		return ok1 && ok2
	}
	var ok3 bool
	s.id, s.Token, s.Holder, ok3 = holderOf(who)
	return ok3
}

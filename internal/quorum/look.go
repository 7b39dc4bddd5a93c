package quorum

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/native"
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

// Look implements protocol.Resource: who holds at a majority holds. A name on which no majority agrees, because it changes
// hands just now, is held by nobody.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	p := r.p
	deadline, ok := ctx.Deadline()
	if limit := time.Now().Add(time.Second); !ok || limit.Before(deadline) {
		deadline = limit
	}
	who := ""
	if watcher != nil && !watcher.Deaf {
		who = string(watcher.ID) + p.channel
	}
	sights := make(chan *sight, len(p.nodes))
	for _, n := range p.nodes {
		p.run(func() { sights <- r.look1(n, who, deadline) })
	}
	said := make([]Node, len(p.nodes))
	for i := range said {
		said[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
	answered, agree := 0, map[protocol.ID]int{}
	for pending := len(p.nodes); pending > 0; {
		var s *sight
		select {
		case s = <-sights:
			pending--
		case <-ctx.Done():
			return protocol.Standing{}, &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: context.Cause(ctx)}
		}
		said[s.node.index] = p.said(s.node, s.facts, s.counts, s.err)
		if !s.counts {
			continue
		}
		answered++
		if agree[s.id]++; agree[s.id] >= p.need {
			return s.Standing, nil
		}
	}
	if answered < p.need {
		return protocol.Standing{}, p.noMajority("look", r.spec.Name, said)
	}
	return protocol.Standing{Server: p.now()}, nil
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
			return &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: context.Cause(ctx)}
		}
		if i+1-failures >= r.p.need {
			return nil
		}
	}
	return nil
}

func (r *resource) look1(n *node, watcher string, deadline time.Time) *sight {
	out := &sight{node: n}
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
	out.counts = n.heard(out.facts, time.Now())
	out.Since = r.p.now() - (out.facts.now - out.Since) // by our clock, as all our answers are
	out.Server = r.p.now()
	return out
}

// read takes a reply apart; false when it is none of ours.
func (s *sight) read(text string) bool {
	f, rest, ok := head(text)
	if !ok || text[0] != 'S' {
		return false
	}
	s.facts, s.Since = f, f.now
	fields := strings.SplitN(rest, "|", 3)
	if len(fields) != 3 {
		return false
	}
	holders, ok1 := native.Number(fields[0])
	waiters, ok2 := native.Number(fields[1])
	s.Holders, s.Waiters = int(holders), int(waiters)
	who := fields[2]
	if !ok1 || !ok2 || holders == 0 {
		return ok1 && ok2
	}
	if len(who) < idSize+32 {
		return false
	}
	var ok3, ok4 bool
	s.id = protocol.ID(who[:idSize])
	s.Token, ok3 = native.Number(who[idSize : idSize+16])
	s.Since, ok4 = native.Number(who[idSize+16 : idSize+32])
	s.Holder = partyOf(s.id, who[idSize+32:])
	return ok3 && ok4
}

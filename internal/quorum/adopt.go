package quorum

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// adopt lets a node count whose memory is old enough: it is told the largest token that a majority
// knows of. Where so many forgot that there is no such majority, it waits until their memories are
// old enough as well, and all of them are told. A node that does not answer may know what is asked
// for, so it does not count as forgetful.
func (p *Protocol) adopt(n *node, born int64) {
	defer func() {
		n.mu.Lock()
		n.adopting, n.adopted = false, time.Now()
		n.mu.Unlock()
	}()
	forgot, counting, floor := p.takeCensus()
	if counting >= p.need {
		now, _ := n.clock.At(time.Now())
		forgot = []*reply{{node: n, facts: facts{now: now, born: born}}}
	}
	answered := counting + len(forgot)
	// Too young, as far as is known by now.
	forgot = slices.DeleteFunc(forgot, func(a *reply) bool { return !p.config.Trust && a.facts.age() < p.memory() })
	switch {
	case counting >= p.need:
	case len(forgot) > p.spare(), p.config.Trust && answered >= p.need:
		// The memory of a majority is lost, or has never been: from here on by time.
		floor = max(floor, p.propose(0))
	default:
		return
	}
	p.letCount(forgot, floor)
}

// takeCensus asks all nodes, until a majority that counts has answered. It returns those that
// forgot, as they do not count by their own record; how many count; and the largest token that they
// know. A majority that counts knows of every token that was accepted.
func (p *Protocol) takeCensus() (forgot []*reply, counting int, floor int64) {
	_ = p.meetNodes(p.nodes, time.Now().Add(time.Second)).collect(context.Background(), func(a *reply) progress {
		switch {
		case a.err != nil || a.facts.ahead || a.facts.same != nil:
			return goOn
		case a.facts.counts:
			counting++
		default:
			forgot = append(forgot, a)
		}
		if floor = max(floor, a.facts.last); counting >= p.need {
			return stop
		}
		return goOn
	})
	return forgot, counting, floor
}

// meetNodes asks nodes for their facts.
func (p *Protocol) meetNodes(nodes []*node, deadline time.Time) *fanOut[*reply] {
	return askNodes(p, nodes, func(n *node) *reply {
		f, err := n.meet(deadline, "", "")
		return &reply{node: n, facts: f, counts: err == nil && p.counts(f), err: err}
	})
}

// letCount tells nodes to count, with a floor of their tokens.
func (p *Protocol) letCount(forgot []*reply, floor int64) {
	deadline := time.Now().Add(time.Second) // its own: the census may have used up another
	nodes, born := make([]*node, len(forgot)), map[*node]int64{}
	for i, a := range forgot {
		nodes[i], born[a.node] = a.node, a.facts.born
	}
	askNodes(p, nodes, func(n *node) error {
		_, err := n.meet(deadline, wire.Digits16(born[n]), wire.Digits16(floor))
		return err
	}).collectRest(func(err error) {
		if err != nil {
			p.config.Logger.Warn("holdfast: a node could not be told to count", "error", err)
		}
	})
}

// Status asks every node what it knows of itself. It takes no longer than ctx's deadline, or a
// second. It fails after Close alone.
func (p *Protocol) Status(ctx context.Context) ([]protocol.Node, error) {
	if p.closed() {
		return nil, errClosed
	}
	t := &tally{p: p}
	p.meetNodes(p.nodes, deadlineWithin(ctx, time.Second)).collectRest(t.add)
	nodes := t.nodes()
	for _, a := range t.replies {
		nodes[a.node.index].Age = a.facts.age()
	}
	return nodes, nil
}

// originMark begins every origin of this format.
const originMark = "q" + string(format)

// Origin implements protocol.Resource: "q3", and for each node what its clock showed at the grant,
// 0 if that is not known. The clock of our answers is that of this process, which says nothing to
// another one.
func (r *resource) Origin(_ protocol.Ticket, granted int64) protocol.Origin {
	p, now := r.p, time.Now()
	age := p.micros(now) - granted
	shown := make([]string, len(p.nodes))
	for i, n := range p.nodes {
		at, ok := n.clock.At(now)
		if !ok {
			at = age
		}
		shown[i] = strconv.FormatInt(max(0, at-age), 10)
	}
	return protocol.Origin(originMark + strings.Join(shown, ","))
}

// Adopt implements protocol.Resource. The age of the hold is the median of what the nodes' clocks
// say that it is. A fixed hold ends by its age, so that is the most that they can say, however slow
// the answers were. The clock of our answers needs no request.
func (r *resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin,
	timed bool) (protocol.AdoptedHold, error) {
	p := r.p
	text, ok := strings.CutPrefix(string(origin), originMark)
	shown := strings.Split(text, ",")
	if !ok || len(shown) != len(p.nodes) {
		return protocol.AdoptedHold{}, protocol.ErrOrigin
	}
	out := protocol.AdoptedHold{Ticket: ticket}
	if !timed {
		return out, nil
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	if err := r.ensureReady(ctx, deadline); err != nil {
		return protocol.AdoptedHold{}, r.asFailure("attach", err)
	}
	out.Sent = time.Now()
	out.Server = p.micros(out.Sent)
	var ages []int64
	for i, n := range p.nodes {
		granted, number := wire.Number(shown[i])
		if !number {
			return protocol.AdoptedHold{}, protocol.ErrOrigin
		}
		at, known := n.clock.At(out.Sent)
		if r.spec.Fixed {
			at, known = n.clock.latestAt(out.Sent)
		}
		if known && granted > 0 {
			ages = append(ages, at-granted)
		}
	}
	if len(ages) == 0 {
		return protocol.AdoptedHold{}, r.asFailure("attach", errNoTime)
	}
	slices.Sort(ages)
	out.Granted = out.Server - ages[len(ages)/2]
	return out, nil
}

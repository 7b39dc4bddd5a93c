package quorum

import (
	"context"
	"slices"
	"time"

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
	forgot, counting, floor := p.census()
	if counting >= p.need {
		now, _ := n.clock.At(time.Now())
		forgot = []forgetful{{node: n, facts: facts{now: now, born: born}}}
	}
	answered := counting + len(forgot)
	// Too young, as far as is known by now.
	forgot = slices.DeleteFunc(forgot, func(a forgetful) bool { return !p.config.Trust && a.age() < p.memory() })
	switch {
	case counting >= p.need:
	case len(forgot) > len(p.nodes)-p.need, p.config.Trust && answered >= p.need:
		// The memory of a majority is lost, or has never been: from here on by time.
		floor = max(floor, p.propose(0))
	default:
		return
	}
	p.letCount(forgot, floor)
}

// A forgetful node does not count by its own record.
type forgetful struct {
	node *node
	facts
}

// census asks all nodes, until a majority that counts has answered. It returns the nodes that
// forgot, how many count, and the largest token that they know. A majority that counts knows of
// every token that was accepted.
func (p *Protocol) census() (forgot []forgetful, counting int, floor int64) {
	type answer struct {
		forgetful
		err error
	}
	deadline := time.Now().Add(time.Second)
	answers := make(chan answer, len(p.nodes))
	for _, n := range p.nodes {
		p.run(func() {
			f, err := n.meet(deadline, "", "")
			answers <- answer{forgetful{n, f}, err}
		})
	}
	for range p.nodes {
		a := <-answers
		if a.err != nil || a.ahead || a.same != nil {
			continue
		}
		floor = max(floor, a.last)
		if !a.counts {
			forgot = append(forgot, a.forgetful)
		} else if counting++; counting >= p.need {
			break
		}
	}
	return forgot, counting, floor
}

// letCount tells nodes to count, with a floor of their tokens.
func (p *Protocol) letCount(nodes []forgetful, floor int64) {
	deadline := time.Now().Add(time.Second) // its own: the census may have used up another
	results := make(chan error, len(nodes))
	for _, a := range nodes {
		p.run(func() {
			_, err := a.node.meet(deadline, wire.Digits16(a.born), wire.Digits16(floor))
			results <- err
		})
	}
	for range nodes {
		if err := <-results; err != nil {
			p.config.Logger.Warn("holdfast: a node could not be told to count", "error", err)
		}
	}
}

// A Node is what a quorum knows of one of its nodes.
type Node struct {
	Name   string
	Counts bool
	Answer string        // about a name; empty when it was asked about itself
	Why    string        // it does not count; empty when it does, or did not answer
	SameAs string        // the node that is the same server, which is why it does not count; empty: none
	Age    time.Duration // since its memory began, by its own clock
	Err    error         // why it did not answer
}

// Status asks every node what it knows of itself. It takes no longer than ctx's deadline, or a
// second. It fails after Close alone.
func (p *Protocol) Status(ctx context.Context) ([]Node, error) {
	if p.closed() {
		return nil, errClosed
	}
	deadline := within(ctx, time.Second)
	nodes := make([]Node, len(p.nodes))
	done := make(chan struct{}, len(p.nodes))
	for i, n := range p.nodes {
		p.run(func() {
			defer func() { done <- struct{}{} }()
			f, err := n.meet(deadline, "", "")
			nodes[i] = p.answerOf(n, f, err == nil && p.counts(f), err)
			nodes[i].Age = f.age()
		})
	}
	for range p.nodes {
		<-done
	}
	return nodes, nil
}

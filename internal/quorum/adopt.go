package quorum

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// adopt lets a node count whose memory is old enough: it is told the largest token that a majority knows of. Where so many
// forgot that there is no such majority, it waits until their memories are old enough as well, and all of them are told.
// A node that does not answer may know what is asked for, so it is not taken for one that forgot.
func (p *Protocol) adopt(n *node, born int64) {
	defer func() {
		n.mu.Lock()
		n.adopting, n.adopted = false, time.Now()
		n.mu.Unlock()
	}()
	type answer struct {
		node *node
		facts
		err error
	}
	deadline := time.Now().Add(time.Second)
	answers := make(chan answer, len(p.nodes))
	for _, other := range p.nodes {
		p.run(func() {
			f, err := other.meet(deadline, "", "")
			answers <- answer{other, f, err}
		})
	}
	counting, floor := 0, int64(0)
	var forgot []answer
	for range p.nodes {
		a := <-answers
		if a.err != nil || a.ahead {
			continue
		}
		floor = max(floor, a.last)
		if !a.counts {
			forgot = append(forgot, a)
		} else if counting++; counting >= p.need {
			break // these know of every token that was accepted
		}
	}
	young := func(f facts) bool { return !p.config.Trust && f.age() < p.memory() } // as far as is known by now
	if counting >= p.need {
		now, _ := n.clock.At(time.Now())
		forgot = []answer{{node: n, facts: facts{now: now, born: born}}}
	}
	answered := counting + len(forgot)
	forgot = slices.DeleteFunc(forgot, func(a answer) bool { return young(a.facts) })
	switch {
	case counting >= p.need:
	case len(forgot) > len(p.nodes)-p.need, p.config.Trust && answered >= p.need:
		// The memory of a majority is lost, or has never been: from here on by time.
		floor = max(floor, p.propose(0))
	default:
		return
	}
	latest := time.Now().Add(time.Second) // not the deadline of above, which one who is still asked may yet look at
	told := make(chan error, len(forgot))
	for _, a := range forgot {
		p.run(func() {
			_, err := a.node.meet(latest, wire.Digits16(a.born), wire.Digits16(floor))
			told <- err
		})
	}
	for range forgot {
		if err := <-told; err != nil {
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
	Age    time.Duration // since its memory began, by its own clock
	Err    error         // why it did not answer
}

// Status asks every node what it knows of itself. It takes no longer than ctx's deadline, or a second; it fails after Close alone.
func (p *Protocol) Status(ctx context.Context) ([]Node, error) {
	if p.closed() {
		return nil, errClosed
	}
	deadline := time.Now().Add(time.Second)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	nodes := make([]Node, len(p.nodes))
	done := make(chan struct{}, len(p.nodes))
	for i, n := range p.nodes {
		p.run(func() {
			defer func() { done <- struct{}{} }()
			f, err := n.meet(deadline, "", "")
			nodes[i] = Node{Name: nodeName(i), Err: err}
			if err != nil {
				return
			}
			nodes[i].Counts, nodes[i].Age = p.counts(f), f.age()
			if !nodes[i].Counts {
				nodes[i].Why = p.whyNot(f)
			}
		})
	}
	for range p.nodes {
		<-done
	}
	return nodes, nil
}

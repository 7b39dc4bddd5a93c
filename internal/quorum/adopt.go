package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/native"
)

// adopt lets a node count whose memory is old enough: it is told the largest token that a majority knows of.
func (p *Protocol) adopt(n *node, born int64) {
	age := func() time.Duration {
		now, _ := n.clock.At(time.Now())
		return time.Duration(now-born) * time.Microsecond
	}
	deadline := time.Now().Add(time.Second)
	defer func() {
		n.mu.Lock()
		n.adopting, n.adopted = false, time.Now()
		n.mu.Unlock()
	}()
	answers := make(chan *facts, len(p.nodes))
	for _, other := range p.nodes {
		p.run(func() {
			f, err := other.meet(deadline, "", "")
			if err != nil {
				answers <- nil
				return
			}
			answers <- &f
		})
	}
	answered, counting, floor := 0, 0, int64(0)
	for range p.nodes {
		f := <-answers
		if f == nil {
			continue
		}
		answered++
		floor = max(floor, f.last)
		if f.counts {
			counting++
		}
		if counting >= p.need {
			break // these know of every token that was accepted
		}
	}
	if answered < p.need || !p.config.Trust && age() < p.memory() { // others may hold for longer than we
		return
	}
	if counting < p.need { // the memory of a majority is lost, or has never been: from here on by time
		floor = max(floor, p.propose(0))
	}
	if _, err := n.meet(deadline, native.Digits16(born), native.Digits16(floor)); err != nil {
		p.config.Logger.Warn("holdfast: a node could not be told to count", "node", nodeName(n.index), "error", err)
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
			nodes[i].Counts, nodes[i].Age = f.counts || p.config.Trust, f.age()
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

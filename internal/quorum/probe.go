package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// probeTimeout bounds a Probe whose context has no earlier deadline.
const probeTimeout = time.Second

// A probeReply is what one node said to a Probe.
type probeReply struct {
	index int
	node  Node
}

// Probe implements protocol.Protocol: a majority of the nodes counts, and can serve. It then waits
// a little for the others: one that evicts keys forgets holds, and counts all the same.
func (p *Protocol) Probe(ctx context.Context) error {
	deadline := within(ctx, probeTimeout)
	replies := make(chan probeReply, len(p.nodes)) // has room for all: nobody waits for a reader that has left
	for i, n := range p.nodes {
		p.run(func() { replies <- probeReply{i, n.probe(deadline)} })
	}
	answers, ready := p.noAnswers(), 0
	var late <-chan time.Time // set once a majority is ready
	for range p.nodes {
		select {
		case reply := <-replies:
			answers[reply.index] = reply.node
			if reply.node.Err == nil && reply.node.Counts {
				ready++
			}
		case <-late:
			return nil
		}
		if ready < p.need {
			continue
		}
		if at := slices.IndexFunc(answers, evicts); at >= 0 {
			return answers[at].Err
		}
		if at := slices.IndexFunc(answers, func(n Node) bool { return n.SameAs != "" }); at >= 0 {
			return &protocol.Failure{Op: "ready", Node: nodeName(at), Reason: protocol.SameServer, Err: errors.New(answers[at].Why)}
		}
		if late == nil {
			timer := time.NewTimer(lateAnswers)
			defer timer.Stop()
			late = timer.C
		}
	}
	if ready >= p.need {
		return nil
	}
	return p.noMajority("ready", "", answers)
}

// evicts tells whether a node said that it may evict keys.
func evicts(n Node) bool {
	var failure *protocol.Failure
	return errors.As(n.Err, &failure) && failure.Reason == protocol.Evicts
}

// probe asks one node whether it counts, and whether it can serve.
func (n *node) probe(deadline time.Time) Node {
	f, err := n.meet(deadline, "", "")
	if err == nil {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		err = wire.At(nodeName(n.index), wire.Probe(ctx, n.store, func(int) string { return n.p.config.Prefix + ":{%quorum}ready" }))
	}
	return n.p.answerOf(n, f, err == nil && n.p.counts(f), err)
}

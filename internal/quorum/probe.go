package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// probeTimeout bounds a Probe whose context has no earlier deadline.
const probeTimeout = time.Second

// Probe implements protocol.Protocol: a majority of the nodes counts, and can serve. It then waits
// a little for the others: one that evicts keys forgets holds, and counts all the same.
func (p *Protocol) Probe(ctx context.Context) error {
	deadline := deadlineWithin(ctx, probeTimeout)
	t := &tally{p: p}
	var refused error // by a node, of a quorum that would be ready without it
	asked := askNodes(p, p.nodes, func(n *node) *reply { return n.probe(deadline) })
	_ = asked.collect(context.Background(), func(a *reply) progress {
		t.add(a)
		if t.counting() < p.need {
			return goOn
		}
		if refused = t.probeError(); refused != nil {
			return stop
		}
		return goOnBriefly
	})
	if t.counting() < p.need {
		return t.noMajority("ready", "")
	}
	return refused
}

// probeError returns what is wrong with a node although a majority is ready, or nil.
func (t *tally) probeError() error {
	for _, a := range t.replies {
		if mayEvict(a.err) {
			return a.err
		}
	}
	for _, n := range t.nodes() {
		if n.SameAs != "" {
			return &protocol.Failure{Op: "ready", Node: n.Name, Reason: protocol.SameServer, Err: errors.New(n.Why)}
		}
	}
	return nil
}

// mayEvict reports whether the error of a node says that it may evict keys.
func mayEvict(err error) bool {
	var failure *protocol.Failure
	return errors.As(err, &failure) && failure.Reason == protocol.Evicts
}

// probe asks one node whether it counts, and whether it can serve.
func (n *node) probe(deadline time.Time) *reply {
	f, err := n.meet(deadline, "", "")
	if err == nil {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		key := n.p.config.Prefix + ":{%quorum}ready"
		err = wire.At(nodeName(n.index), wire.Probe(ctx, n.store, func(int) string { return key }, false))
	}
	return &reply{node: n, facts: f, counts: err == nil && n.p.counts(f), err: err}
}

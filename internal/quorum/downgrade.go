package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Downgrade implements protocol.Resource. Nodes that do not answer go on to take the hold for one that excludes, which
// keeps readers out there and lets nobody in.
func (r *resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	p := r.p
	replies := make(chan *reply, len(p.nodes))
	for _, n := range p.nodes {
		p.run(func() { replies <- r.downgrade1(n, &ask) })
	}
	out := &tally{r: r, need: p.need, nodes: len(p.nodes), pending: len(p.nodes)}
	named := map[int64]int{} // how many nodes name a token
	var best, taken *reply
	none := 0
	for out.pending > 0 {
		var a *reply
		select {
		case a = <-replies:
		case <-ctx.Done():
			return protocol.Answer{}, r.failed("downgrade", protocol.EndOf(ctx))
		}
		out.take(a)
		switch a.status {
		case 'H':
			if named[a.first]++; a.first > 0 && (best == nil || named[a.first] > named[best.first]) {
				best = a
			}
		case 'B':
			none++
		case 'R':
			taken = a
			none++
		}
		switch {
		case out.won >= p.need && best != nil && (named[best.first] >= p.need || out.pending == 0):
			return protocol.Answer{Status: protocol.Held, Token: best.first, Block: best.final - best.first + 1, Server: p.now()}, nil
		case none > len(p.nodes)-p.need && taken != nil:
			return protocol.Answer{}, &protocol.Replaced{Name: r.spec.Name, By: taken.by}
		case none > len(p.nodes)-p.need:
			return protocol.Answer{Status: protocol.Busy, Server: p.now()}, nil
		case out.foreign > len(p.nodes)-p.need:
			return protocol.Answer{}, out.foreigner()
		case out.won+out.pending < p.need && max(none, out.foreign)+out.pending <= len(p.nodes)-p.need:
			err := out.noMajority("downgrade")
			var failure *protocol.Failure
			if errors.As(err, &failure) {
				failure.Unknown = true
			}
			return protocol.Answer{}, err
		}
	}
	return protocol.Answer{}, out.noMajority("downgrade")
}

func (r *resource) downgrade1(n *node, ask *protocol.Ask) *reply {
	out, sent := &reply{node: n}, time.Now()
	text, err := n.ask(&r.p.scripts.downgrade, r.spec.Name, ask.Deadline, []any{nil, nil, 4, r.state, r.waiting, r.watching, r.p.factsKey(),
		string(ask.Ticket.ID), r.mode, wire.Millis(ask.TTL), r.field, r.waiter(ask.Ticket)})
	switch {
	case err != nil:
		out.err = err
	case !out.read(text):
		out.err = n.unreadable("downgrade", r.spec.Name, text)
	default:
		out.counts = n.heard(&out.facts, sent, time.Now(), ask.Deadline)
	}
	return out
}

// Resize implements protocol.Resource: there are no permits.
func (r *resource) Resize(context.Context, int64, time.Time) error {
	return &protocol.Failure{Op: "resize", Name: r.spec.Name, Reason: protocol.Unsupported, Err: errors.New(noPermits)}
}

// BindLatch implements protocol.Protocol: there are no latches.
func (p *Protocol) BindLatch(spec protocol.Spec) protocol.LatchResource { return latch{p.bind(spec)} }

type latch struct{ *resource }

func (l latch) refuse() error {
	return &protocol.Failure{Op: "latch", Name: l.spec.Name, Reason: protocol.Unsupported, Err: errors.New(noLatches)}
}

// Set implements protocol.LatchResource.
func (l latch) Set(context.Context, protocol.ID, int64, time.Duration, time.Time) (protocol.Standing, bool, error) {
	return protocol.Standing{}, false, l.refuse()
}

// CountDown implements protocol.LatchResource.
func (l latch) CountDown(context.Context, protocol.ID, time.Time, time.Time) (protocol.Standing, error) {
	return protocol.Standing{}, l.refuse()
}

// Look implements protocol.LatchResource.
func (l latch) Look(context.Context, *protocol.Ticket) (protocol.Standing, error) {
	return protocol.Standing{}, l.refuse()
}

// Unwatch implements protocol.LatchResource.
func (l latch) Unwatch(context.Context, protocol.Ticket) error { return l.refuse() }

package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Downgrade implements protocol.Resource. A node that does not answer goes on to take the hold for
// one that excludes. It keeps readers out there and lets nobody in.
func (r *resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	p := r.p
	replies := make(chan *reply, len(p.nodes))
	for _, n := range p.nodes {
		p.run(func() { replies <- r.downgradeAt(n, &ask) })
	}
	out := &downgradeTally{
		tally: tally{r: r, need: p.need, nodes: len(p.nodes), pending: len(p.nodes)},
		named: map[int64]int{},
	}
	for out.pending > 0 {
		select {
		case a := <-replies:
			out.take(a)
		case <-ctx.Done():
			return protocol.Answer{}, r.failed("downgrade", protocol.EndOf(ctx))
		}
		if answer, decided, err := out.decided(); decided {
			return answer, err
		}
	}
	return protocol.Answer{}, out.noMajority("downgrade")
}

// A downgradeTally counts the answers to a downgrade.
type downgradeTally struct {
	tally
	named  map[int64]int // how many nodes name a token
	best   *reply        // with the token that most nodes name
	broken *reply        // of a node where the hold was broken
	none   int           // nodes without the hold
}

func (t *downgradeTally) take(a *reply) {
	t.tally.take(a)
	switch a.status {
	case 'H':
		t.named[a.first]++
		if a.first > 0 && (t.best == nil || t.named[a.first] > t.named[t.best.first]) {
			t.best = a
		}
	case 'B':
		t.none++
	case 'R':
		t.broken = a
		t.none++
	}
}

// decided is the answer, if the answers so far allow one.
func (t *downgradeTally) decided() (answer protocol.Answer, decided bool, err error) {
	p, few := t.r.p, t.nodes-t.need
	switch {
	case t.won >= t.need && t.best != nil && (t.named[t.best.first] >= t.need || t.pending == 0):
		return protocol.Answer{Status: protocol.Held, Token: t.best.first, Block: t.best.final - t.best.first + 1, Server: p.now()}, true, nil
	case t.none > few && t.broken != nil:
		return answer, true, &protocol.Broken{Name: t.r.spec.Name, By: t.broken.by}
	case t.none > few:
		return protocol.Answer{Status: protocol.Busy, Server: p.now()}, true, nil
	case t.foreign > few:
		return answer, true, t.foreigner()
	case t.won+t.pending < t.need && max(t.none, t.foreign)+t.pending <= few:
		err := t.noMajority("downgrade")
		var failure *protocol.Failure
		if errors.As(err, &failure) {
			failure.Unknown = true
		}
		return answer, true, err
	}
	return answer, false, nil
}

func (r *resource) downgradeAt(n *node, ask *protocol.Ask) *reply {
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

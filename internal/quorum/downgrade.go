package quorum

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Downgrade implements protocol.Resource. A node that does not answer goes on to take the hold for
// one that excludes. It keeps readers out there and lets nobody in.
func (r *resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	t := &tally{p: r.p}
	var answer protocol.Answer
	var decided bool
	var err error
	asked := askNodes(r.p, r.p.nodes, func(n *node) *reply { return r.downgradeAt(n, &ask) })
	ended := t.collect(ctx, asked, func() bool {
		answer, decided, err = r.judgeDowngrade(t)
		return decided
	})
	switch {
	case ended != nil:
		return protocol.Answer{}, r.asFailure("downgrade", ended)
	case !decided:
		return protocol.Answer{}, t.noMajority("downgrade", r.spec.Name)
	}
	return answer, err
}

// judgeDowngrade decides, if the replies so far allow it. A node without the hold says so whether
// it counts or not.
func (r *resource) judgeDowngrade(t *tally) (answer protocol.Answer, decided bool, err error) {
	need, spare, pending := r.p.need, r.p.spare(), t.pending()
	won, none := t.votes(letterHeld), t.answers(letterBusy+letterBroken)
	foreign, foreignErr := t.foreign()
	agreed, best := most(t, func(a *reply) (int64, bool) { return a.first, a.hasStatus(letterHeld) && a.first > 0 })
	switch {
	case won >= need && best != nil && (agreed >= need || pending == 0):
		block := best.final - best.first + 1
		return protocol.Answer{Status: protocol.Held, Token: best.first, Block: block, Server: r.p.now()}, true, nil
	case none > spare:
		if broken := r.brokenError(t); broken != nil {
			return answer, true, broken
		}
		return protocol.Answer{Status: protocol.Busy, Server: r.p.now()}, true, nil
	case foreign > spare:
		return answer, true, foreignErr
	case won+pending < need && max(none, foreign)+pending <= spare:
		failure := t.noMajority("downgrade", r.spec.Name)
		failure.Unknown = true
		return answer, true, failure
	}
	return answer, false, nil
}

func (r *resource) downgradeAt(n *node, ask *protocol.Ask) *reply {
	return n.query(&r.p.scripts.downgrade, r.spec.Name, ask.Deadline, []any{nil, nil, 4, r.state, r.waiting,
		r.watching, r.p.factsKey(),
		string(ask.Ticket.ID), r.mode, wire.Millis(ask.TTL), r.field, r.waiter(ask.Ticket)}, (*reply).readAsk)
}

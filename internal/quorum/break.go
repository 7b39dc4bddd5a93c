package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// breakTimeout bounds a Break whose context has no earlier deadline.
const breakTimeout = time.Second

// Break implements protocol.Operators. It asks all nodes to make a remainder of the hold. A
// majority of those that count must have done so, by this Break or an earlier one. Otherwise what
// this one did is taken back everywhere, in the background. A hold cannot be ended by force: no
// moment is the same at all nodes.
func (p *Protocol) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	if b.Force {
		return false, &protocol.Failure{Op: "break", Name: name, Reason: protocol.Unsupported, Err: protocol.ErrNoForce}
	}
	if b.Token <= 0 || b.Token >= 1<<53 { // no hold has it
		return false, nil
	}
	r := p.bind(protocol.Spec{Name: name, Kind: b.Kind})
	if b.Kind == 0 {
		r.mode = ""
	}
	id, deadline := protocol.NewID(), deadlineWithin(ctx, breakTimeout)
	asked := r.sendBreak(id, b, deadline)
	t := &tally{p: p}
	var done, decided bool
	var err error
	ended := t.collect(ctx, asked, func() bool {
		done, decided, err = judgeBreak(t)
		return decided
	})
	switch {
	case ended != nil:
		err = noAnswer("break", name, ended).OrUnknown(true)
	case !decided:
		failure := t.noMajority("break", name)
		failure.Unknown = failure.Unknown || t.votes("X") > 0 // its holder may have been told
		err = failure
	}
	if !done {
		p.startWorker(func() {
			for _, a := range t.replies {
				r.takeBackAt(a, id, deadline)
			}
			asked.collectRest(func(a *reply) { r.takeBackAt(a, id, deadline) })
		})
	}
	return done, err
}

// judgeBreak decides whether the hold is broken, if the replies so far allow it.
func judgeBreak(t *tally) (done, decided bool, err error) {
	broken, _ := most(t, func(a *reply) (protocol.ID, bool) { return a.holder, a.counts && a.hasStatus("X") })
	foreign, foreignErr := t.foreign()
	switch {
	case broken >= t.p.need: // its holder gets no majority of yes any more
		return true, true, nil
	case t.votes("N") >= t.p.need: // it is nobody's lease
		return false, true, nil
	case foreign > t.p.spare():
		return false, true, foreignErr
	}
	return false, false, nil
}

// sendBreak asks all nodes. Each gives one reply by the deadline. The cleanup that takes the Break
// back at a node waits for that.
func (r *resource) sendBreak(id protocol.ID, b protocol.Break, deadline time.Time) *fanOut[*reply] {
	return prepareAndAsk(r.p, r.p.nodes, func(n *node) func() *reply {
		n.askSent(id)
		return func() *reply {
			defer n.askDone(id)
			return r.breakAt(n, id, b, deadline)
		}
	})
}

func (r *resource) breakAt(n *node, id protocol.ID, b protocol.Break, deadline time.Time) *reply {
	return n.queryInTime(&r.p.scripts.breaks, r.spec.Name, deadline, func(notAfter string) []any {
		return []any{nil, nil, 2, r.state, r.p.factsKey(), r.mode, wire.Digits16(b.Token), string(id), b.By, notAfter}
	}, (*reply).readBreak)
}

// takeBackAt takes back what a Break has done, or may yet do, at the node of a reply.
func (r *resource) takeBackAt(a *reply, id protocol.ID, deadline time.Time) {
	c := cleanup{resource: r, id: id, round: endless, how: freeBreak, notBefore: time.Now(),
		until: deadline.Add(r.spec.Life)}
	switch {
	case a.mayApply():
		c.notBefore = deadline.Add(time.Millisecond)
	case a.status != 'X': // there was nothing to end
		return
	}
	a.node.addCleanup(c)
}

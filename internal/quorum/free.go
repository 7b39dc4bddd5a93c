package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Free implements protocol.Resource: it asks all nodes and waits for a majority. The other answers
// are handled in the background. The hold is given back if a majority had it. Otherwise it was
// broken if any node says so: the same question finds nothing there again.
func (r *resource) Free(ctx context.Context, free protocol.Free) (bool, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	p := r.p
	p.done(free.Ticket.ID)
	replies := r.sendFree(free, deadline)
	out := &freeTally{r: r, answers: p.noAnswers()}
	var late <-chan time.Time
	for range p.nodes {
		select {
		case a := <-replies:
			out.take(a)
		case <-late:
			return false, out.noMajority()
		case <-ctx.Done():
			return false, &protocol.Failure{Op: "release", Name: r.spec.Name, Reason: protocol.NoAnswer, Unknown: true, Err: protocol.EndOf(ctx)}
		}
		if decided, was, err := out.decided(); decided {
			return was, err
		}
		if out.failures > len(p.nodes)-p.need && late == nil { // a node that lives may say that it was broken
			late = time.After(lateAnswers)
		}
	}
	if out.failures > len(p.nodes)-p.need {
		return false, out.noMajority()
	}
	// A majority answered, and the nodes that did not may have had the hold.
	return out.broken == nil && out.yes > 0 && out.yes+out.failures >= p.need, out.broken
}

// sendFree gives a ticket back at all nodes.
func (r *resource) sendFree(free protocol.Free, deadline time.Time) <-chan *reply {
	p := r.p
	p.markFreed(free.Ticket.ID)
	c := r.freeOf(free.Ticket)
	if free.Keep > 0 {
		c.keep = p.local(free.Keep)
	}
	replies := make(chan *reply, len(p.nodes))
	for _, n := range p.nodes {
		done := n.releaseSent(r.spec.Name)
		p.run(func() {
			a := r.freeAt(n, c, deadline)
			done()
			replies <- a
		})
	}
	return replies
}

// A freeTally counts the answers to a release.
type freeTally struct {
	r                          *resource
	yes, no, foreign, failures int
	broken, foreigner          error // the answer of such a node
	answers                    []Node
}

func (f *freeTally) take(a *reply) {
	answer := Node{Name: nodeName(a.node.index), Counts: true, Err: a.err}
	var foreign *protocol.Foreign
	switch {
	case errors.As(a.err, &foreign):
		f.foreign++
		f.foreigner = a.err
	case a.err != nil:
		f.failures++
	case a.status == '1':
		f.yes++
		answer.Answer = "given back"
	case a.status == 'R':
		f.no++
		f.broken = &protocol.Broken{Name: f.r.spec.Name, By: a.by}
		answer.Answer = "broken"
	default:
		f.no++
		answer.Answer = "not held"
	}
	f.answers[a.node.index] = answer
}

// decided tells whether the answers so far decide: whether the hold is given back, or why not.
func (f *freeTally) decided() (decided, was bool, err error) {
	p := f.r.p
	few := len(p.nodes) - p.need
	switch {
	case f.yes >= p.need:
		return true, true, nil
	case f.foreign > few:
		return true, false, f.foreigner
	case f.no > few, f.failures > few && f.broken != nil:
		return true, false, f.broken
	}
	return false, false, nil
}

func (f *freeTally) noMajority() error {
	err := f.r.p.noMajority("release", f.r.spec.Name, f.answers)
	var failure *protocol.Failure
	if errors.As(err, &failure) {
		failure.Unknown = true // some have freed, and the others are asked again
	}
	return err
}

// freeAt frees at one node, and sees to it that it is free in the end: a node that did not answer
// is asked again.
func (r *resource) freeAt(n *node, c cleanup, deadline time.Time) *reply {
	n.dropPlaceCleanup(c.id)
	status, by, err := n.freeHold(&c, deadline)
	if passing(err) {
		c.notBefore = time.Now().Add(50 * time.Millisecond)
		n.addCleanup(c)
	}
	return &reply{node: n, err: err, status: status, by: by}
}

// freeOf is the cleanup of a holder that frees its ticket.
func (r *resource) freeOf(ticket protocol.Ticket) cleanup {
	now := time.Now()
	return cleanup{resource: r, id: ticket.ID, round: endless, how: freeHolder, waiter: r.waiter(ticket), notBefore: now, until: now.Add(r.spec.Life)}
}

// release gives a ticket back everywhere, in the background.
func (r *resource) release(ticket protocol.Ticket) {
	r.p.markFreed(ticket.ID)
	for _, n := range r.p.nodes {
		n.addCleanup(r.freeOf(ticket))
	}
}

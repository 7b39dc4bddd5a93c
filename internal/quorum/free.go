package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Free implements protocol.Resource: it asks all nodes and waits for a majority. The other answers
// are handled in the background. The hold is given back if a majority had it. Otherwise it was
// broken if any node says so: the same question finds nothing there again.
func (r *resource) Free(ctx context.Context, free protocol.FreeRequest) (bool, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	p := r.p
	p.forgetWait(free.Ticket.ID)
	t := &tally{p: p}
	var was, decided bool
	var err error
	ended := r.sendFree(free, deadline).collect(ctx, func(a *reply) progress {
		t.add(a)
		was, decided, err = r.judgeFree(t)
		switch {
		case decided:
			return stop
		case t.silent() > p.spare(): // a node that lives may say that it was broken
			return goOnBriefly
		}
		return goOn
	})
	switch {
	case ended != nil:
		return false, noAnswer("release", r.spec.Name, ended).OrUnknown(true)
	case decided:
		return was, err
	case t.silent() > p.spare():
		failure := t.noMajority("release", r.spec.Name)
		failure.Unknown = true // some have freed, and the others are asked again
		return false, failure
	}
	// A majority answered, and the nodes that did not may have had the hold.
	if broken := r.brokenError(t); broken != nil {
		return false, broken
	}
	return t.votes("1") > 0 && t.votes("1")+t.silent() >= p.need, nil
}

// silent returns how many nodes have failed to answer a release. A foreign key is an answer.
func (t *tally) silent() int {
	foreign, _ := t.foreign()
	return t.count(func(a *reply) bool { return a.err != nil }) - foreign
}

// judgeFree decides whether the hold is given back, or why not, if the replies so far allow it.
func (r *resource) judgeFree(t *tally) (was, decided bool, err error) {
	foreign, foreignErr := t.foreign()
	broken := r.brokenError(t)
	switch {
	case t.votes("1") >= r.p.need:
		return true, true, nil
	case foreign > r.p.spare():
		return false, true, foreignErr
	case t.votes("0R") > r.p.spare(), t.silent() > r.p.spare() && broken != nil:
		return false, true, broken
	}
	return false, false, nil
}

// brokenError returns the error that a node says that the hold was broken, or nil if none says so.
func (r *resource) brokenError(t *tally) error {
	for _, a := range t.replies {
		if a.hasStatus("R") {
			return &protocol.Broken{Name: r.spec.Name, By: a.by}
		}
	}
	return nil
}

// sendFree gives a ticket back at all nodes.
func (r *resource) sendFree(free protocol.FreeRequest, deadline time.Time) *fanOut[*reply] {
	r.p.markFreed(free.Ticket.ID)
	c := r.cleanupOf(free.Ticket)
	if free.Keep > 0 {
		c.keep = r.p.local(free.Keep)
	}
	return prepareAndAsk(r.p, r.p.nodes, func(n *node) func() *reply {
		done := n.releaseSent(r.spec.Name)
		return func() *reply {
			defer done()
			return r.freeAt(n, c, deadline)
		}
	})
}

// freeAt frees at one node, and sees to it that it is free in the end: a node that did not answer
// is asked again. The answer says nothing of the node, so each counts.
func (r *resource) freeAt(n *node, c cleanup, deadline time.Time) *reply {
	n.dropPlaceCleanup(c.id)
	status, by, err := n.freeHold(&c, deadline)
	if isPassing(err) {
		c.notBefore = time.Now().Add(50 * time.Millisecond)
		n.addCleanup(c)
	}
	return &reply{node: n, counts: err == nil, err: err, status: status, by: by}
}

// cleanupOf returns the cleanup of a holder that frees its ticket.
func (r *resource) cleanupOf(ticket protocol.Ticket) cleanup {
	now := time.Now()
	return cleanup{resource: r, id: ticket.ID, round: endless, how: freeHolder, waiter: r.waiter(ticket),
		notBefore: now, until: now.Add(r.spec.Life)}
}

// releaseEverywhere gives a ticket back everywhere, in the background.
func (r *resource) releaseEverywhere(ticket protocol.Ticket) {
	r.p.markFreed(ticket.ID)
	for _, n := range r.p.nodes {
		n.addCleanup(r.cleanupOf(ticket))
	}
}

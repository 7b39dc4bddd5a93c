package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Free implements protocol.Resource: it asks all nodes and waits for a majority; the rest is done
// behind. The hold is given back when a majority had it. Else it was taken over when any node says
// so: the same question finds nothing there again.
func (r *resource) Free(ctx context.Context, free protocol.Free) (bool, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	p := r.p
	p.done(free.Ticket.ID)
	p.freed(free.Ticket.ID)
	d := debt{r: r, id: free.Ticket.ID, round: endless, how: 'f', waiter: r.waiter(free.Ticket), due: time.Now(), until: time.Now().Add(placeLife)}
	if free.Undo {
		d.how = 'u'
	}
	if free.Keep > 0 {
		d.keep = p.local(free.Keep)
	}
	replies := make(chan *reply, len(p.nodes))
	for _, n := range p.nodes {
		done := n.freeing(r.spec.Name)
		p.run(func() {
			a := r.free1(n, d, deadline)
			done()
			replies <- a
		})
	}
	out := &freed{r: r, said: make([]Node, len(p.nodes))}
	for i := range out.said {
		out.said[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
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
		few := len(p.nodes) - p.need
		switch {
		case out.yes >= p.need:
			return true, nil
		case out.foreign > few:
			return false, out.foreigner
		case out.no > few, out.failures > few && out.taken != nil:
			return false, out.taken
		case out.failures > few && late == nil: // one of those that live may say that it was taken over
			late = time.After(courtesy)
		}
	}
	if out.failures > len(p.nodes)-p.need {
		return false, out.noMajority()
	}
	// A majority answered, and those that did not may have had the hold.
	return out.taken == nil && out.yes > 0 && out.yes+out.failures >= p.need, out.taken
}

// A freed counts the answers to a release.
type freed struct {
	r                          *resource
	yes, no, foreign, failures int
	taken, foreigner           error // what such a node said
	said                       []Node
}

func (f *freed) take(a *reply) {
	said := Node{Name: nodeName(a.node.index), Counts: true, Err: a.err}
	var foreign *protocol.Foreign
	switch {
	case errors.As(a.err, &foreign):
		f.foreign++
		f.foreigner = a.err
	case a.err != nil:
		f.failures++
	case a.status == '1':
		f.yes++
		said.Answer = "given back"
	case a.status == 'R':
		f.no++
		f.taken = &protocol.Replaced{Name: f.r.spec.Name, By: a.by}
		said.Answer = "taken over"
	default:
		f.no++
		said.Answer = "not held"
	}
	f.said[a.node.index] = said
}

func (f *freed) noMajority() error {
	err := f.r.p.noMajority("release", f.r.spec.Name, f.said)
	var failure *protocol.Failure
	if errors.As(err, &failure) {
		failure.Unknown = true // some have freed, and those that have not are asked again
	}
	return err
}

// free1 frees at one node, and sees to it that it is free in the end: a node that did not answer is asked again.
func (r *resource) free1(n *node, d debt, deadline time.Time) *reply {
	n.instead(d.id)
	was, by, err := n.free(&d, deadline)
	if passing(err) {
		d.due = time.Now().Add(50 * time.Millisecond)
		n.owe(d)
	}
	return &reply{node: n, err: err, status: was, by: by}
}

// release gives a ticket back everywhere, behind.
func (r *resource) release(ticket protocol.Ticket) {
	r.p.freed(ticket.ID)
	for _, n := range r.p.nodes {
		n.owe(debt{r: r, id: ticket.ID, round: endless, how: 'f', waiter: r.waiter(ticket), due: time.Now(), until: time.Now().Add(placeLife)})
	}
}

// passing tells whether a request that failed may do better later.
func passing(err error) bool {
	var failure *protocol.Failure
	return errors.As(err, &failure) && failure.Again()
}

// placeLife is how long a debt is kept: what is left at a node that was away for longer, its expiry removes.
const placeLife = 18 * time.Second

package deadlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The bounds of a walk.
const (
	maxInspections = 100  // of one walk
	pageOfPlaces   = 100  // that one inspection tells
	pageOfHolds    = 1000 // that the first inspection of a name tells
)

// A walk looks once for the cycle whose victim a waiter is. See the package document.
type walk struct {
	servers     protocol.Operators
	ctx         context.Context
	inspections int // so far

	name     string         // that the waiter waits for
	place    protocol.Place // of the waiter
	blockers map[protocol.ID]blocker
	steps    []walkStep
	seen     map[protocol.Evidence]bool // the holds of steps
}

// A blocker is a hold that keeps a waiter out.
type blocker struct {
	hold  protocol.Hold
	ahead *protocol.Place // see Member
}

// A walkStep is a hold on the way, and the waiter that has it.
type walkStep struct {
	under  protocol.Evidence
	hold   protocol.Hold // once it was looked at
	parent int           // the step whose hold keeps this waiter out; -1: the waiter is the first
	place  protocol.Place
	ahead  *protocol.Place
}

// Walk returns the cycle whose victim is a ticket that waits for a name. It returns nil if there is
// none, or if it is too far to walk. The error is that of Inspect.
func Walk(ctx context.Context, servers protocol.Operators, name string, id protocol.ID) (*Cycle, error) {
	w := &walk{servers: servers, ctx: ctx, name: name, blockers: make(map[protocol.ID]blocker),
		seen: make(map[protocol.Evidence]bool)}
	err := w.visitQueue(name, func(q *queuePlace) bool {
		if q.place.ID != id {
			return true
		}
		w.place = q.place
		for _, h := range q.holds {
			if ahead, out := q.isKeptOutBy(h); out {
				w.blockers[h.ID] = blocker{h, ahead}
			}
		}
		return false
	})
	if err != nil || len(w.blockers) == 0 {
		return nil, err
	}
	w.push(-1, w.place, nil)
	for i := 0; i < len(w.steps); i++ {
		if found, err := w.followHold(i); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// push adds the holds under which a waiter waits as steps.
func (w *walk) push(parent int, place protocol.Place, ahead *protocol.Place) {
	for _, under := range place.Under {
		if !w.seen[under] && len(w.steps) < maxInspections {
			w.seen[under] = true
			w.steps = append(w.steps, walkStep{under: under, parent: parent, place: place, ahead: ahead})
		}
	}
}

// followHold looks at the hold of a step, and at all waiters that it keeps out. It returns the
// cycle if one of them has a hold that keeps out the first waiter.
func (w *walk) followHold(i int) (found *Cycle, err error) {
	under := w.steps[i].under
	err = w.visitQueue(under.Name, func(q *queuePlace) bool {
		h, held := q.hold(under.ID)
		if !held {
			return false
		}
		w.steps[i].hold = h
		if len(q.place.Under) == 0 || !joinedBefore(&q.place, &w.place) {
			return true
		}
		ahead, out := q.isKeptOutBy(h)
		if !out {
			return true
		}
		for _, next := range q.place.Under {
			if b, blocks := w.blockers[next.ID]; blocks && next.Name == w.name {
				found = w.makeCycle(i, Member{Waits: under.Name, Place: q.place, Holds: w.name, Hold: b.hold,
					ahead: ahead}, b.ahead)
				return false
			}
		}
		w.push(i, q.place, ahead)
		return true
	})
	return found, err
}

// joinedBefore reports whether a waiter joined its queue before another, by the clocks of the
// servers that have the queues. The tickets decide if both joined at the same time. All walks see
// the same.
func joinedBefore(a, b *protocol.Place) bool {
	return a.Order < b.Order || a.Order == b.Order && a.ID < b.ID
}

// makeCycle returns the cycle of the first waiter, of the last one that the walk found, and of
// those on the way from the hold that keeps the last one out. Ahead is of the first waiter.
func (w *walk) makeCycle(i int, last Member, ahead *protocol.Place) *Cycle {
	members := []Member{{}, last}
	for ; w.steps[i].parent >= 0; i = w.steps[i].parent {
		s := &w.steps[i]
		members = append(members, Member{
			Waits: w.steps[s.parent].under.Name, Place: s.place, Holds: s.under.Name, Hold: s.hold, ahead: s.ahead,
		})
	}
	members[0] = Member{Waits: w.name, Place: w.place, Holds: w.steps[i].under.Name, Hold: w.steps[i].hold,
		ahead: ahead}
	return &Cycle{members}
}

// A queuePlace is a place of a queue, and what is in front of it.
type queuePlace struct {
	place protocol.Place
	holds []protocol.Hold // of the name; no remainders
	alone *protocol.Place // the first place in front of it that shares with nobody; nil: there is none
}

// hold is the hold of a ticket.
func (q *queuePlace) hold(id protocol.ID) (protocol.Hold, bool) {
	for _, h := range q.holds {
		if h.ID == id {
			return h, true
		}
	}
	return protocol.Hold{}, false
}

// isKeptOutBy reports whether a hold keeps the place out. Ahead is the place in front that the hold
// excludes, if it does not exclude this one.
func (q *queuePlace) isKeptOutBy(h protocol.Hold) (ahead *protocol.Place, out bool) {
	switch {
	case excludes(&h, &q.place):
		return nil, true
	case !sameOwner(h.Party, q.place.Party) && q.alone != nil && excludes(&h, q.alone):
		return q.alone, true
	}
	return nil, false
}

// excludes reports whether a hold keeps a waiter out by itself: they do not both share, and have no
// owner in common.
func excludes(h *protocol.Hold, p *protocol.Place) bool {
	return !(h.Shared && p.Shared) && !sameOwner(h.Party, p.Party)
}

func sameOwner(a, b protocol.Party) bool { return !a.Unnamed && !b.Unnamed && a.Owner == b.Owner }

// visitQueue inspects a name and calls visit with the places of its queue, in order, until it
// returns false. Semaphores and latches are skipped: no single hold of theirs keeps a waiter out.
// It stops at the last inspection of the walk.
func (w *walk) visitQueue(name string, visit func(*queuePlace) bool) error {
	q := queuePlace{}
	page := protocol.Page{Holds: pageOfHolds, Queue: pageOfPlaces}
	for ; w.inspections < maxInspections; page.Holds = 0 {
		w.inspections++
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		in, err := w.servers.Inspect(ctx, name, page)
		cancel()
		if err != nil {
			return err
		}
		if in.Kind == 0 || in.Kind == protocol.Semaphore || in.Kind == protocol.Latch {
			return nil
		}
		if page.Holds > 0 {
			q.holds = leasable(in.Holds)
		}
		for _, p := range in.Queue {
			page.After = p.Order
			if p.Closed || p.Until <= in.Server {
				continue // it keeps nobody out
			}
			if q.place = p; !visit(&q) {
				return nil
			}
			if q.alone == nil && !p.Shared {
				q.alone = &p
			}
		}
		if len(in.Queue) < page.Queue {
			return nil
		}
	}
	return nil
}

// leasable returns the holds of which a caller may have a lease.
func leasable(holds []protocol.Hold) (out []protocol.Hold) {
	for _, h := range holds {
		if h.State == protocol.HoldTaken || h.State == protocol.HoldOffered {
			out = append(out, h)
		}
	}
	return out
}

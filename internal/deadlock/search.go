package deadlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

const (
	maxCycles    = 1000        // that Search returns
	confirmEvery = time.Second // while Search waits for cycles to be confirmed
)

// Search walks from the waiters with evidence, of all names, and returns the cycles that it can
// confirm within a time, at most 1,000. Of one name it knows the first 10,000 places. Pause waits
// for a time, and is false if ctx or the client ended first: then Search returns what was confirmed
// before. The error is that of Inspect; then no cycle is returned.
func Search(ctx context.Context, servers protocol.Operators, within time.Duration,
	pause func(context.Context, time.Duration) bool,
) (confirmed []*Cycle, err error) {
	suspected, err := suspect(ctx, servers)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(within); len(suspected) > 0 && time.Now().Before(until) && pause(ctx, confirmEvery); {
		for victim, s := range suspected {
			found, err := Walk(ctx, servers, s.first.Members[0].Waits, victim)
			if err != nil {
				return nil, err
			}
			cycle := s.Confirm(found)
			if cycle != nil {
				confirmed = append(confirmed, cycle)
			}
			if cycle != nil || !s.Exists() {
				delete(suspected, victim)
			}
		}
	}
	slices.SortFunc(confirmed,
		func(a, b *Cycle) int { return cmp.Compare(a.Members[0].Place.Order, b.Members[0].Place.Order) })
	return confirmed, nil
}

// suspect walks once from every waiter with evidence, and returns what it found by victim.
func suspect(ctx context.Context, servers protocol.Operators) (map[protocol.ID]*Suspicion, error) {
	suspected := make(map[protocol.ID]*Suspicion)
	for name, err := range servers.Names(ctx, "*") {
		if err != nil {
			return nil, err
		}
		if name.Foreign != "" {
			continue
		}
		w := walk{servers: servers, ctx: ctx}
		var waiters []protocol.ID
		err := w.visitQueue(name.Name, func(q *queuePlace) bool {
			if len(q.place.Under) > 0 {
				waiters = append(waiters, q.place.ID)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		for _, id := range waiters {
			found, err := Walk(ctx, servers, name.Name, id)
			if err != nil {
				return nil, err
			}
			if found != nil {
				suspected[id] = &Suspicion{found}
			}
			if len(suspected) == maxCycles {
				return suspected, nil
			}
		}
	}
	return suspected, nil
}

// A Cycle is waiters of which each waits for what the next one holds, and the last one for what the
// first one holds. The first one joined its queue last: it is the victim. A Cycle is also the error
// that ended the victim's wait.
type Cycle struct{ Members []Member }

// A Member is one waiter of a Cycle.
type Member struct {
	Waits string         // the name that it waits for
	Place protocol.Place // its place in that queue
	Holds string         // the name for which the member before it waits
	Hold  protocol.Hold  // its hold of that name

	// ahead is in front of it in the queue, and is kept out by the next member's hold, which does
	// not exclude the waiter itself; nil: that hold excludes it.
	ahead *protocol.Place
}

func (c *Cycle) Error() string { return fmt.Sprintf("a deadlock of %d waiters", len(c.Members)) }

// equals reports whether another walk found the same cycle: the same tickets wait, and the same
// hold.
func (c *Cycle) equals(other *Cycle) bool {
	if other == nil || len(c.Members) != len(other.Members) {
		return false
	}
	for i := range c.Members {
		a, b := &c.Members[i], &other.Members[i]
		if a.Waits != b.Waits || a.Place.ID != b.Place.ID || a.Holds != b.Holds || a.Hold.ID != b.Hold.ID ||
			a.aheadID() != b.aheadID() {
			return false
		}
	}
	return true
}

// confirms reports whether all waiters of the cycle have asked since an earlier walk that found it.
func (c *Cycle) confirms(first *Cycle) bool {
	for i := range c.Members {
		now, before := &c.Members[i], &first.Members[i]
		if now.Place.Until <= before.Place.Until || now.ahead != nil && now.ahead.Until <= before.ahead.Until {
			return false
		}
	}
	return true
}

func (m *Member) aheadID() protocol.ID {
	if m.ahead == nil {
		return ""
	}
	return m.ahead.ID
}

// A Suspicion is a cycle that a walk found and no later one has confirmed.
type Suspicion struct{ first *Cycle }

// Exists reports whether there is such a cycle.
func (s *Suspicion) Exists() bool { return s.first != nil }

// Confirm takes what a walk found, nil for nothing. It returns the cycle if an earlier walk found
// the same and every member has asked in between; else nil.
func (s *Suspicion) Confirm(found *Cycle) *Cycle {
	if found == nil || !found.equals(s.first) {
		s.first = found
		return nil
	}
	if !found.confirms(s.first) {
		return nil
	}
	return found
}

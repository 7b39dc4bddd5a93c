package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Deadlock is a cycle of waiters. Each waits for what the next one holds, and the last one for
// what the first one holds. The first one joined its queue last: it is the victim. A Deadlock is
// also the error that ended the victim's wait.
type Deadlock struct{ Members []DeadlockMember }

// A DeadlockMember is one waiter of a Deadlock.
type DeadlockMember struct {
	Waits string         // the name that it waits for
	Place protocol.Place // its place in that queue
	Holds string         // the name for which the member before it waits
	Hold  protocol.Hold  // its hold of that name

	// ahead is in front of it in the queue, and is kept out by the next member's hold, which does
	// not exclude the waiter itself; nil: that hold excludes it.
	ahead *protocol.Place
}

func (d *Deadlock) Error() string { return fmt.Sprintf("a deadlock of %d waiters", len(d.Members)) }

// same tells whether another walk found the same cycle: the same tickets wait, and the same hold.
func (d *Deadlock) same(other *Deadlock) bool {
	if other == nil || len(d.Members) != len(other.Members) {
		return false
	}
	for i := range d.Members {
		a, b := &d.Members[i], &other.Members[i]
		if a.Waits != b.Waits || a.Place.ID != b.Place.ID || a.Holds != b.Holds || a.Hold.ID != b.Hold.ID || a.aheadID() != b.aheadID() {
			return false
		}
	}
	return true
}

// confirms tells whether all waiters of the cycle have asked since an earlier walk that found it.
func (d *Deadlock) confirms(first *Deadlock) bool {
	for i := range d.Members {
		now, before := &d.Members[i], &first.Members[i]
		if now.Place.Until <= before.Place.Until || now.ahead != nil && now.ahead.Until <= before.ahead.Until {
			return false
		}
	}
	return true
}

func (m *DeadlockMember) aheadID() protocol.ID {
	if m.ahead == nil {
		return ""
	}
	return m.ahead.ID
}

// A sighting is a cycle that was seen, and not yet confirmed; nil: none was.
type sighting struct{ first *Deadlock }

// confirmed takes what a walk found. It returns the cycle if an earlier walk found the same and
// every member has asked in between.
func (s *sighting) confirmed(found *Deadlock) *Deadlock {
	if found == nil || !found.same(s.first) {
		s.first = found
		return nil
	}
	if !found.confirms(s.first) {
		return nil
	}
	return found
}

// watchDeadlocks looks for deadlocks while an attempt with evidence waits, and ends the context
// that it returns if the attempt is the victim of one. The caller must call end when the wait is
// over.
func (a *attempt) watchDeadlocks(ctx context.Context) (waiting context.Context, end func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	first := min(a.lock.options.TTL, walkEvery)
	timer := time.AfterFunc(jitter(first), func() {
		if a.engine.begin() != nil {
			return
		}
		defer a.engine.busy.Done()
		if found := a.findDeadlock(waiting, first); found != nil {
			cancel(found)
		}
	})
	return waiting, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// findDeadlock walks until the attempt is the victim of a deadlock, or its wait is over: then it
// returns nil. The pauses begin with the given one and double while no cycle is seen. Another
// goroutine runs the attempt meanwhile.
func (a *attempt) findDeadlock(ctx context.Context, pause time.Duration) *Deadlock {
	e, seen := a.engine, sighting{}
	for {
		e.mu.Lock()
		id := a.ticket.ID // another after the end of a lease
		e.mu.Unlock()
		found, err := e.walk(ctx, a.name, id)
		if err != nil && ctx.Err() == nil {
			e.config.Logger.Warn("holdfast: looking for a deadlock", "name", a.name, "error", err)
		}
		if deadlock := seen.confirmed(found); deadlock != nil {
			return deadlock
		}
		next := jitter(askEvery) // time for the members to ask
		if seen.first == nil {
			pause = min(2*pause, walkEvery)
			next = jitter(pause)
		}
		if !e.pause(ctx, next) {
			return nil
		}
	}
}

// Deadlocks walks from every waiter with evidence, of all names, and tells the cycles that it can
// confirm, maxDeadlocks at most. It ends no wait. The error is as Inspect's.
func (e *Engine) Deadlocks(ctx context.Context) (out []*Deadlock, err error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.end(ctx, time.Now(), &err)
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	seen, err := e.scanDeadlocks(ctx)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(2 * askEvery); len(seen) > 0 && time.Now().Before(until); {
		if !e.pause(ctx, confirmEvery) {
			return nil, e.check(ctx)
		}
		for victim, s := range seen {
			found, err := e.walk(ctx, s.first.Members[0].Waits, victim)
			if err != nil {
				return nil, err
			}
			deadlock := s.confirmed(found)
			if deadlock != nil {
				out = append(out, deadlock)
			}
			if deadlock != nil || s.first == nil {
				delete(seen, victim)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Deadlock) int { return cmp.Compare(a.Members[0].Place.Order, b.Members[0].Place.Order) })
	return out, nil
}

// scanDeadlocks walks once from every waiter with evidence, and returns what it saw by victim.
func (e *Engine) scanDeadlocks(ctx context.Context) (map[protocol.ID]*sighting, error) {
	seen := make(map[protocol.ID]*sighting)
	for name, err := range e.protocol.Names(ctx, "*") {
		if err != nil {
			return nil, err
		}
		if name.Foreign != "" {
			continue
		}
		w := walk{engine: e, ctx: ctx}
		var waiters []protocol.ID
		err := w.look(name.Name, func(q *queued) bool {
			if len(q.place.Under) > 0 {
				waiters = append(waiters, q.place.ID)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		for _, id := range waiters {
			found, err := e.walk(ctx, name.Name, id)
			if err != nil {
				return nil, err
			}
			if found != nil {
				seen[id] = &sighting{found}
			}
			if len(seen) == maxDeadlocks {
				return seen, nil
			}
		}
	}
	return seen, nil
}

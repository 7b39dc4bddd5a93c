package deadlock

import (
	"cmp"
	"context"
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

package workload

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// An actor is one goroutine of a worker.
type actor struct {
	client  *holdfast.Client
	dice    dice
	names   Names
	rec     *history.Recorder
	slot    int
	storage *storage
	err     error // of the workload itself
}

// A hold is a lease with how it is held.
type hold struct {
	*history.Lease
	shares bool
	ttl    time.Duration
	fixed  bool // it is not renewed
	seen   map[string]int64
}

// takeStep takes something, uses and gives back what it got.
func (a *actor) takeStep() {
	typ, names := a.names.draw(a.dice)
	switch {
	case typ == history.Latch:
		a.useLatch(names[0])
	case typ == history.Election && a.dice.Percent(35):
		a.askLeader(names[0])
	case typ == history.Mutex && a.dice.Percent(4):
		a.runDo(names[0])
	default:
		w := a.drawWant(typ, names)
		if h := a.acquire(context.Background(), w, nil); h != nil {
			a.useLease(h, 2)
		}
	}
	if a.dice.Percent(30) {
		pause(a.dice.Short(0, 20*time.Millisecond), nil)
	}
}

// acquire takes what is wanted, under the lease outer if there is one.
func (a *actor) acquire(ctx context.Context, w want, outer *hold) *hold {
	limit := a.dice.Short(10*time.Millisecond, longestWait)
	if w.record.Kind != history.Lock {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if w.record.Kind == history.Lock && a.dice.Percent(20) {
		// Cancelled at a moment of its own, rather than at the deadline: about when a grant may
		// come.
		limit = a.dice.Short(0, limit)
		defer time.AfterFunc(limit, cancel).Stop()
	}
	h := &w.hold
	if outer != nil {
		w.record.Root = outer.About.Hold
		h.ttl, h.fixed = outer.ttl, outer.fixed // an entry lives as the lease it entered
	}
	var err error
	h.Lease, err = a.rec.Take(w.record, limit, func() (*holdfast.Lease, error) { return w.take(ctx) })
	if err != nil {
		return nil
	}
	return h
}

package simulate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// useLatch is one latch: the operation's client sets it, the next ones count it down, and the one
// before waits.
func (w *world) useLatch(op *Op) {
	w.mu.Lock()
	clients, began := slices.Clone(w.clients), time.Now()
	w.mu.Unlock()
	at := func(i int) (*client, *holdfast.Latch) {
		c := clients[(op.Client+i)%len(clients)]
		return c, c.Latch(fmt.Sprintf("latch-%d", op.ID), holdfast.WithTTL(op.TTL))
	}
	setter, latch := at(0)
	if err := latch.Set(setter.ctx, int(op.Weight)); err != nil {
		w.noteLatchFailure(setter, op, "set", err)
		return
	}
	var (
		works   sync.WaitGroup
		counted int
		last    time.Time
	)
	for i := range int(op.Weight) {
		works.Go(func() {
			sleep(time.Duration(i+1) * 100 * time.Millisecond)
			w.mu.Lock()
			counted++
			w.mu.Unlock()
			c, latch := at(i + 1)
			if err := latch.CountDown(c.ctx); err != nil {
				w.noteLatchFailure(c, op, "count down", err)
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			last = time.Now()
		})
	}
	waiter, latch := at(len(clients) - 1)
	ctx, cancel := context.WithTimeout(waiter.ctx, op.Limit)
	defer cancel()
	err := latch.Wait(ctx)
	w.mu.Lock()
	missing, late := int(op.Weight)-counted, time.Duration(0)
	if !last.IsZero() { // else it opened before any count was answered
		late = time.Since(last)
	}
	w.mu.Unlock()
	works.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch recovered := began.After(w.recoveredAt); {
	case err != nil:
		w.addEvent(waiter, op.ID, "latch", "shut")
		if recovered && w.faulty == 0 {
			w.addViolation(judge.Latch, "wait for the latch of op %d: %v", op.ID, err)
		}
	case missing > 0:
		w.addViolation(judge.Latch, "latch of op %d opened, although %d had not begun to count down", op.ID, missing)
	case late > maxIdle && recovered:
		w.addViolation(judge.Latch, "latch of op %d was told %v late", op.ID, late)
	default:
		w.addEvent(waiter, op.ID, "latch", "open")
	}
}

// noteLatchFailure takes a failed call on a latch.
func (w *world) noteLatchFailure(c *client, op *Op, what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addEvent(c, op.ID, "latch", what+" failed")
	if !w.isTroubled() && !c.dead {
		w.addViolation(judge.Failed, "%s of the latch of op %d: %v", what, op.ID, err)
	}
}

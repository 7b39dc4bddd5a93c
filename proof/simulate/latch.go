package simulate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// useLatch is one latch: the operation's client sets it, the next ones count it down, and the one
// before waits.
func (w *world) useLatch(op *Op) {
	w.mu.Lock()
	clients := append([]*client(nil), w.clients...)
	began := time.Now()
	w.mu.Unlock()
	at := func(i int) *client { return clients[(op.Client+i)%len(clients)] }
	latchOf := func(c *client) *holdfast.Latch {
		return c.Latch(fmt.Sprintf("latch-%d", op.ID), holdfast.WithTTL(op.TTL))
	}
	if err := latchOf(at(0)).Set(at(0).ctx, int(op.Weight)); err != nil {
		w.noteLatchFailure(at(0), op, "set", err)
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
			if err := latchOf(at(i + 1)).CountDown(at(i + 1).ctx); err != nil {
				w.noteLatchFailure(at(i+1), op, "count down", err)
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			last = time.Now()
		})
	}
	waiter := at(len(clients) - 1)
	ctx, cancel := context.WithTimeout(waiter.ctx, op.Limit)
	defer cancel()
	err := latchOf(waiter).Wait(ctx)
	w.mu.Lock()
	missing := int(op.Weight) - counted
	late := time.Duration(0)
	if !last.IsZero() { // else it opened before any count was answered
		late = time.Since(last)
	}
	w.mu.Unlock()
	works.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
	case missing > 0:
		w.addViolation(judge.Latch, "latch of op %d opened, although %d had not begun to count down", op.ID, missing)
	case late > maxIdle && began.After(w.recoveredAt):
		w.addViolation(judge.Latch, "latch of op %d was told %v late", op.ID, late)
	default:
		w.addEvent(waiter, op.ID, "latch", "open")
		return
	}
	if err != nil {
		w.addEvent(waiter, op.ID, "latch", "shut")
		if began.After(w.recoveredAt) && w.faulty == 0 {
			w.addViolation(judge.Latch, "wait for the latch of op %d: %v", op.ID, err)
		}
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

package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
)

// watchDeadlocks looks for deadlocks while an attempt with evidence waits, and ends the context
// that it returns if the attempt is the victim of one. The caller must call end when the wait is
// over.
func (a *attempt) watchDeadlocks(ctx context.Context) (waiting context.Context, end func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	first := min(a.lock.options.TTL, walkEvery)
	timer := time.AfterFunc(jitter(first), func() {
		if a.engine.admitCall(nil) != nil {
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
func (a *attempt) findDeadlock(ctx context.Context, pause time.Duration) *deadlock.Cycle {
	e, suspicion := a.engine, deadlock.Suspicion{}
	for {
		e.mu.Lock()
		id := a.ticket.ID // another after the end of a lease
		e.mu.Unlock()
		found, err := deadlock.Walk(ctx, e.protocol, a.call.name, id)
		if err != nil && ctx.Err() == nil {
			e.config.Logger.Warn("holdfast: looking for a deadlock", "name", a.call.name, "error", err)
		}
		if confirmed := suspicion.Confirm(found); confirmed != nil {
			return confirmed
		}
		next := jitter(askEvery) // time for the members to ask
		if !suspicion.Exists() {
			pause = min(2*pause, walkEvery)
			next = jitter(pause)
		}
		if !e.pause(ctx, next) {
			return nil
		}
	}
}

// Deadlocks returns the cycles of all names that deadlock.Search can confirm while their members
// ask. It ends no wait. The error is as Inspect's.
func (e *Engine) Deadlocks(ctx context.Context) (found []*deadlock.Cycle, err error) {
	err = e.do(ctx, nil, func() error {
		found, err = deadlock.Search(ctx, e.protocol, 2*askEvery, e.pause)
		return cmp.Or(err, e.check(ctx))
	})
	return found, err
}

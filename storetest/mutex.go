package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// Clients, handles and goroutines contend, some in the queue, some trying, some in strict order.
// Never two are inside, and tokens grow.
func oneAtATime(e *env) {
	var inside, last atomic.Int64
	e.contend(3, 3, 8, func(c *client, i, _ int) {
		m := c.Mutex(name)
		if i == 0 {
			m = c.Mutex(name, holdfast.WithStrictOrder())
		}
		lease, err := m.Lock(e.ctx())
		if err != nil {
			e.Errorf("Lock: %v", err)
			return
		}
		if n := inside.Add(1); n != 1 {
			e.Errorf("%d hold at once", n)
		}
		if token := lease.Token(); last.Swap(token) >= token {
			e.Errorf("the token %d does not grow", token)
		}
		inside.Add(-1)
		e.release(lease)
	})
}

func pollingInNoLine(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithCancel(context.Background())
	w := e.startWaiting(ctx, b, b.Mutex(name, holdfast.WithPolling(time.Hour, 0)).Lock)
	if held := e.busyError(a.Mutex(name)); held.Waiters != 0 {
		e.Errorf("%d stand in the queue", held.Waiters)
	}
	e.release(lease)
	e.checkFree(a.Mutex(name)) // the lock was not handed over
	cancel()
	w.awaitGiveUp(context.Canceled)
}

func release() []test {
	return []test{
		{"with a context that is over", releaseOver, 0},
		{"lets the next in", releaseHandsOn, 0},
	}
}

// Trap 13.
func releaseOver(e *env) {
	a, b := e.client(), e.client()
	taken, cancel := context.WithCancel(context.Background())
	lease := e.take(inContext(taken, a.Mutex(name).Lock))
	cancel()
	if err := lease.Release(); err != nil {
		e.Errorf("Release with the context of Lock, which is over: %v", err)
	}
	e.checkFree(b.Mutex(name))
}

func releaseHandsOn(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	w := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
	e.release(lease)
	next := w.await()
	e.busyError(a.Mutex(name))
	e.checkHolds(next) // the server has the hold, not only a message
	e.release(next)
}

func reentry() []test {
	return []test{
		{"under a lease's context", reenter, 0},
		{"does not wait for those in the queue", reenterPastLine, 0},
	}
}

func reenter(e *env) {
	a, b := e.client(), e.client()
	outer := e.lock(a.Mutex(name))
	inner := e.takeUnder(outer, a.Mutex(name).TryLock)
	locked := e.takeUnder(inner, a.Mutex(name).Lock)
	if inner.Token() != outer.Token() || locked.Token() != outer.Token() || inner.Owner() != outer.Owner() {
		e.Errorf("tokens %d, %d, %d", outer.Token(), inner.Token(), locked.Token())
	}
	if held := e.busyError(b.Mutex(name)); held.Holders != 1 {
		e.Errorf("%d hold", held.Holders)
	}
	for _, lease := range []*holdfast.Lease{locked, inner} {
		e.release(lease)
		e.checkIs(lease.Release(), holdfast.ErrNotHeld)
		if leased.Context(lease).Err() == nil || outer.Err() != nil || leased.Context(outer).Err() != nil {
			e.Errorf("its own context: %v; that of the hold: %v, %v", leased.Context(lease).Err(), outer.Err(),
				leased.Context(outer).Err())
		}
		e.busyError(b.Mutex(name))
	}
	e.must(a.Mutex(name).Do(leased.Context(outer), func(ctx context.Context) error { return ctx.Err() }))
	e.release(outer)
	e.checkFree(b.Mutex(name))
}

func reenterPastLine(e *env) {
	a, b := e.client(), e.client()
	outer := e.lock(a.Mutex(name))
	w := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
	inner := e.takeUnder(outer, a.Mutex(name).TryLock)
	e.release(outer)
	if w.hasReturned() {
		e.Error("another is in, although the inner entry holds")
	}
	e.release(inner)
	e.release(w.await())
}

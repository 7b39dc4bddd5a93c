package storetest

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

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

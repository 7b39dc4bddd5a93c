package storetest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func reentry() []test {
	return []test{
		{"under a lease's context", reenter, 0},
		{"after the release is a new contender", reenterReleased, 0},
		{"without the context is a new contender", reenterWithout, 0},
		{"does not wait for those in the queue", reenterPastLine, 0},
		{"ends with the hold", reenterLost, 0},
		{"a hundred times", reenterOften, 0},
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

// A context does not keep an entry that was given back: neither if another holds, nor if the hold
// goes on with another entry, nor if it went to another goroutine. Goroutines may still have that
// context.
func reenterReleased(e *env) {
	a, b := e.client(), e.client()
	m := a.Mutex(name)
	lease := e.lock(m)
	ctx := context.WithoutCancel(leased.Context(lease))
	contend := inContext(ctx, m.TryLock)
	inner := e.take(contend)
	e.release(lease)
	e.heldError(contend)
	e.release(inner)
	next := e.lock(b.Mutex(name))
	e.heldError(contend)
	e.release(next)
	again := e.take(contend)
	if again.Token() <= lease.Token() && !e.backend.NoTokens {
		e.Errorf("token %d after %d", again.Token(), lease.Token())
	}
	contend = inContext(context.WithoutCancel(leased.Context(again)), m.TryLock)
	w := e.startWaitingFor(e.ctx(), a, m)
	e.release(again)
	passed := w.await()
	e.heldError(contend)
	e.release(passed)
}

func reenterPastLine(e *env) {
	a, b := e.client(), e.client()
	outer := e.lock(a.Mutex(name))
	w := e.startWaitingFor(e.ctx(), b, b.Mutex(name))
	inner := e.takeUnder(outer, a.Mutex(name).TryLock)
	e.release(outer)
	if w.hasReturned() {
		e.Error("another is in, although the inner entry holds")
	}
	e.release(inner)
	e.release(w.await())
}

func reenterLost(e *env) {
	a, b := e.client(), e.client()
	outer := e.takeFixed(a, name, roomy)
	ctx := context.WithoutCancel(leased.Context(outer))
	inner := e.take(inContext(ctx, a.Mutex(name, holdfast.WithTTL(time.Minute)).TryLock))
	e.awaitLoss(inner, holdfast.LossExpired)
	e.checkLost(outer.Err(), holdfast.LossExpired)
	e.checkLost(inner.Release(), holdfast.LossExpired)
	next := e.lock(b.Mutex(name))
	e.checkIs(e.lockError(inContext(ctx, a.Mutex(name).TryLock)), holdfast.ErrHeld) // a lost hold cannot be entered
	e.release(next)
}

// Traps 25 and 33: entries add no times up, in any mode, and leave no goroutine.
func reenterOften(e *env) {
	a, b := e.client(), e.client()
	ttl := holdfast.WithTTL(20 * time.Second)
	rw := a.RWMutex("rw", ttl)
	for _, test := range []struct{ enter, other lockFunc }{
		{a.Mutex(name, ttl).Lock, b.Mutex(name).TryLock}, {rw.Lock, b.RWMutex("rw").TryLock},
		{rw.RLock, b.RWMutex("rw").TryLock},
	} {
		leases := []*holdfast.Lease{e.take(test.enter)}
		for range 30 {
			leases = append(leases, e.take(inContext(leased.Context(leases[len(leases)-1]), test.enter)))
		}
		for _, lease := range leases {
			if held := e.heldError(test.other); held.Remaining > 20*time.Second || held.Holders != 1 {
				e.Errorf("got %v", held)
			}
			e.release(lease)
		}
		e.release(e.take(test.other))
	}
}

func reenterWithout(e *env) {
	a, b := e.client(), e.client()
	lease, other := e.lock(a.Mutex(name)), e.lock(b.Mutex("other"))
	e.busyError(a.Mutex(name))
	// in another process
	e.checkIs(e.lockError(inContext(leased.Context(lease), b.Mutex(name).TryLock)), holdfast.ErrHeld)
	e.checkIs(e.lockError(inContext(leased.Context(lease), a.Mutex("other").TryLock)), holdfast.ErrHeld)
	e.release(other)
	e.release(lease)
}

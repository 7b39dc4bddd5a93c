package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func release() []test {
	return []test{
		{"by many at once", releaseByMany, 0},
		{"with a context that is over", releaseOver, 0},
		{"after a loss", releaseLost, 0},
		{"ends the lease", releaseEnds, 0},
		{"lets the next in", releaseHandsOn, 0},
	}
}

func releaseByMany(e *env) {
	lease := e.lock(e.client().Mutex(name))
	var good atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := lease.Release(); err == nil {
				good.Add(1)
			} else {
				e.checkIs(err, holdfast.ErrNotHeld)
			}
		})
	}
	all.Wait()
	if n := good.Load(); n != 1 {
		e.Errorf("%d released it", n)
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

// Trap 3: a late release returns an error that says so, and does not touch the next holder.
func releaseLost(e *env) {
	a, b := e.client(), e.client()
	lease := e.takeFixed(a, name, ttl)
	e.awaitEnd(leased.Context(lease))
	next := e.lock(b.Mutex(name))
	for range 2 {
		err := lease.Release()
		e.checkLost(err, holdfast.LossExpired)
		if errors.Is(err, holdfast.ErrNotHeld) {
			e.Errorf("%v: nobody had released it", err)
		}
	}
	e.busyError(a.Mutex(name))
	e.release(next)
}

func releaseEnds(e *env) {
	c := e.client()
	for _, l := range []*holdfast.Lease{e.lock(c.Mutex(name)), e.take(c.All([]string{"a", "b"}).Lock)} {
		e.release(l)
		e.checkIs(l.Release(), holdfast.ErrNotHeld)
		if ctx := leased.Context(l); ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) ||
			errors.Is(context.Cause(ctx), holdfast.ErrLost) {
			e.Errorf("the context of %s: %v, %v", l.Name(), ctx.Err(), context.Cause(ctx))
		}
		e.checkIs(l.Err(), holdfast.ErrNotHeld)
		e.checkIs(e.check(l), holdfast.ErrNotHeld)
		if l.Until().After(time.Now()) {
			e.Errorf("%s is trusted for %v", l.Name(), time.Until(l.Until()))
		}
	}
	if lost := c.of(holdfast.EventLost); len(lost) > 0 {
		e.Errorf("lost: %v", lost)
	}
}

func releaseHandsOn(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	w := e.startWaitingFor(e.ctx(), b, b.Mutex(name))
	e.release(lease)
	next := w.await()
	e.busyError(a.Mutex(name))
	e.checkHolds(next) // the server has the hold, not only a message
	e.release(next)
}

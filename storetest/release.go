package storetest

import (
	"context"
	"errors"
	"sync"
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
	const n = 8
	results := make(chan error, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() { results <- lease.Release() })
	}
	all.Wait()
	good := 0
	for range n {
		if err := <-results; err == nil {
			good++
		} else {
			e.checkIs(err, holdfast.ErrNotHeld)
		}
	}
	if good != 1 {
		e.Errorf("%d released it", good)
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
	lease, unasked, group := e.lock(c.Mutex(name)), e.lock(c.Mutex("another")), e.take(c.All([]string{"a", "b"}).Lock)
	ctx := leased.Context(lease)
	e.release(lease, unasked, group)
	for _, l := range []*holdfast.Lease{lease, unasked, group} {
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
		e.awaitEnd(leased.Context(l))
	}
	e.awaitEnd(ctx)
	if lost := c.of(holdfast.EventLost); len(lost) > 0 {
		e.Errorf("lost: %v", lost)
	}
}

func releaseHandsOn(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	w := e.startLock(e.ctx(), b, b.Mutex(name))
	e.release(lease)
	next := w.await()
	e.busyError(a.Mutex(name))
	if err := e.check(next); err != nil { // the server has the hold, not only a message
		e.Errorf("Check: %v", err)
	}
	e.release(next)
}

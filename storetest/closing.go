package storetest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func closing() []test {
	return []test{
		{"gives all leases back", closeReleases, 0},
		{"ends contexts with a cause", closeEnds, 0},
		{"wakes who waits", closeWakes, leaves},
	}
}

func (e *env) close(c *client) {
	e.Helper()
	if err := c.Close(); err != nil {
		e.Errorf("Close: %v", err)
	}
}

func closeReleases(e *env) {
	a, b := e.client(), e.client()
	names := []string{"one", "two", "three"}
	for _, n := range names {
		e.takeUnder(e.lock(a.Mutex(n)), a.Mutex(n).TryLock) // two entries, one hold
	}
	e.lock(a.Mutex("owned", holdfast.WithOwner("o")))
	e.close(a)
	for _, n := range append(names, "owned") {
		e.checkFree(b.Mutex(n))
	}
}

func closeEnds(e *env) {
	c := e.client()
	lease, unasked := e.lock(c.Mutex("one")), e.lock(c.Mutex("two"))
	ctx := leased.Context(lease)
	e.close(c)
	e.checkIs(e.awaitEnd(ctx), holdfast.ErrClosed)
	for _, l := range []*holdfast.Lease{lease, unasked} {
		e.checkIs(l.Err(), holdfast.ErrClosed)
		e.checkIs(context.Cause(leased.Context(l)), holdfast.ErrClosed)
		e.checkIs(e.check(l), holdfast.ErrClosed)
		e.checkIs(l.Release(), holdfast.ErrClosed)
	}
	if lost := c.of(holdfast.EventLost); len(lost) > 0 {
		e.Errorf("lost: %v", lost)
	}
}

func closeWakes(e *env) {
	a, b := e.client(), e.client()
	lease, leads := e.lock(a.Mutex(name)), e.take(a.Election("leader").Campaign)
	waits := []lockFunc{b.Mutex(name).Lock, b.Mutex(name).Lock, b.Mutex(name, holdfast.WithStrictOrder()).Lock,
		b.Mutex(name, holdfast.WithPolling(time.Hour, 0)).Lock, b.All([]string{"a", name}).Lock,
		b.Election("leader").Campaign,
		noLease(func() error { return b.Election("leader").Run(e.ctx(), e.never) }),
		noLease(func() (last error) {
			for _, err := range b.Election("leader").Observe(e.ctx()) {
				last = err
			}
			return last
		})}
	if !e.backend.NoLatches {
		e.must(a.Latch("latch").Set(e.ctx(), 1))
		waits = append(waits, noLease(func() error { return b.Latch("latch").Wait(e.ctx()) }))
	}
	waiters := make([]*waiter, len(waits))
	for i, wait := range waits {
		waiters[i] = e.startWaiting(e.ctx(), b, wait)
	}
	e.close(b)
	for i, w := range waiters {
		lease, err := w.awaitResult()
		if e.checkIs(err, holdfast.ErrClosed); lease != nil {
			e.Errorf("wait %d got a lease", i)
		}
	}
	e.release(lease, leads)
	e.release(e.take(a.All([]string{name, "a", "leader"}).TryLock))
}

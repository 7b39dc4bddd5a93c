package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func semaphore() []test {
	return []test{
		{"never more than there are", neverMore, 0},
		{"another number of permits", mismatch, 0},
		{"is not entered", notEntered, 0},
	}
}

// acquire returns a method that takes n permits.
func acquire(s *holdfast.Semaphore, n int64, try bool) lockFunc {
	return func(ctx context.Context) (*holdfast.Lease, error) {
		if try {
			return s.TryAcquire(ctx, n)
		}
		return s.Acquire(ctx, n)
	}
}

// resize sets the number of permits. Doing it again does no harm.
func (e *env) resize(s *holdfast.Semaphore, n int64) error {
	return e.askUntilAnswered(func() error { return s.Resize(e.ctx(), n) })
}

// No more permits are taken than there are, by clients and goroutines, some trying.
func neverMore(e *env) {
	const permits = 5
	var taken atomic.Int64
	e.contend(3, 4, 10, func(c *client, i, round int) {
		n := int64(i+round)%permits + 1
		lease, err := acquire(c.Semaphore(name, permits), n, i == 0)(e.ctx())
		if i == 0 && (errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable)) {
			return
		}
		if err != nil {
			e.Errorf("Acquire: %v", err)
			return
		}
		if now := taken.Add(n); now > permits {
			e.Errorf("%d of %d are taken", now, permits)
		}
		taken.Add(-n)
		e.release(lease)
	})
}

// checkMismatch fails unless an error says both numbers.
func (e *env) checkMismatch(err error, want, have int64) {
	e.Helper()
	if bad := e.checkRefused(err, "permits"); bad != nil &&
		(bad.Problems[0].Value != want || !strings.Contains(err.Error(), fmt.Sprint(have))) {
		e.Errorf("%v does not say %d and %d", err, want, have)
	}
}

func mismatch(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(acquire(a.Semaphore(name, 3), 1, true))
	for _, n := range []int64{2, 4, 1 << 31} {
		e.checkMismatch(e.lockError(acquire(b.Semaphore(name, n), 1, true)), n, 3)
		e.checkMismatch(errorOf(b.Semaphore(name, n).Acquire(e.ctx(), 1)), n, 3)
		e.checkMismatch(b.Semaphore(name, n).Do(e.ctx(), 1,
			func(context.Context) error { e.Error("it ran"); return nil }),
			n, 3)
	}
	e.release(e.take(acquire(b.Semaphore(name, 3), 2, true))) // nothing was changed
	e.release(lease)
	e.release(e.take(acquire(b.Semaphore(name, 4), 4, true)))
}

// Permits are counted, not owned: under a lease's context an acquire takes other permits.
func notEntered(e *env) {
	c := e.client()
	s := c.Semaphore(name, 2)
	one := e.take(acquire(s, 1, true))
	two, err := e.lockWhenFree(inContext(leased.Context(one), acquire(s, 1, true)))
	if err != nil {
		e.Fatalf("TryAcquire: %v", err)
	}
	e.checkIs(e.lockError(inContext(leased.Context(two), acquire(s, 1, true))), holdfast.ErrHeld)
	e.release(one)
	e.checkIs(e.lockError(inContext(leased.Context(two), acquire(s, 2, true))), holdfast.ErrHeld)
	e.release(two)
}

// A Resize leaves the holders their permits and the waiters their place. That includes goroutines
// that wait behind others of their process, which have not asked the server yet.
func resizing() []test {
	return []test{
		{"goroutines go on when there are more", resizeGrows, 0},
		{"the old number is refused to new callers", resizeOldNumber, 0},
	}
}

// startCrowd starts six goroutines that wait for n permits each, one after the other.
func (e *env) startCrowd(c *client, s *holdfast.Semaphore, n int64) (waiters []*waiter) {
	e.Helper()
	for range 6 {
		waiters = append(waiters, e.startWaiting(e.ctx(), c, acquire(s, n, false)))
	}
	return waiters
}

// checkNoneIn fails if one of the waiters is in, or gave up, while all of those before it hold. On
// a machine that stands still for a claim, one of these may have lost what it was handed.
func (e *env) checkNoneIn(waiters []*waiter, before ...*holdfast.Lease) {
	e.Helper()
	isLost := func(lease *holdfast.Lease) bool { return lease.Err() != nil }
	for i, w := range waiters {
		if w.hasReturned() && !slices.ContainsFunc(before, isLost) {
			e.Fatalf("the %dth of those that have to wait is in, or gave up: %v", i+1, w.err)
		}
	}
}

// awaitInOrder lets the waiters in one after the other: as many as there is room for at once, and
// the next when the first of them releases.
func (e *env) awaitInOrder(waiters []*waiter, room int) {
	e.Helper()
	var held []*holdfast.Lease
	for i, w := range waiters {
		held = append(held, w.await())
		if len(held) == room {
			e.checkNoneIn(waiters[i+1:], held...)
			e.release(held[0])
			held = held[1:]
		}
	}
	e.release(held...)
}

func (e *env) checkAllTaken(permits int64) {
	e.Helper()
	e.checkIs(e.lockError(acquire(e.client().Semaphore(name, permits), 1, true)), holdfast.ErrHeld)
}

func resizeGrows(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(acquire(a.Semaphore(name, 2), 2, true))
	waiters := e.startCrowd(b, b.Semaphore(name, 2), 1)
	e.must(e.resize(a.Semaphore(name, 2), 5))
	one, two, three := waiters[0].await(), waiters[1].await(), waiters[2].await()
	e.checkNoneIn(waiters[3:], one, two, three)
	e.checkAllTaken(5)
	e.checkHolds(lease)
	e.release(two)
	e.release(three)
	e.awaitInOrder(waiters[3:], 2)
	e.release(one)
	e.release(lease)
}

// The library cannot tell a handle from before the Resize from one of a program that disagrees. A
// try is refused at once, and so is any call once its process has learned of the Resize. Goroutines
// that have waited since before the Resize go on.
func resizeOldNumber(e *env) {
	a, b := e.client(), e.client()
	s := b.Semaphore(name, 2)
	lease := e.take(acquire(a.Semaphore(name, 2), 2, true))
	waiters := e.startCrowd(b, s, 1)
	e.must(e.resize(a.Semaphore(name, 2), 4))
	e.checkMismatch(e.lockError(acquire(s, 1, true)), 2, 4)
	one, two := waiters[0].await(), waiters[1].await()
	b.await(holdfast.EventRetried, 1) // the third has asked, and learned of it
	e.checkMismatch(e.lockError(acquire(s, 1, true)), 2, 4)
	for range 2 {
		e.checkMismatch(errorOf(s.Acquire(e.ctx(), 1)), 2, 4)
		e.checkMismatch(errorOf(b.Semaphore(name, 2, holdfast.WithPolling(time.Millisecond, 0)).Acquire(e.ctx(), 1)), 2,
			4)
		e.checkMismatch(errorOf(b.Semaphore(name, 2, holdfast.WithStrictOrder()).Acquire(e.ctx(), 1)), 2, 4)
	}
	next := e.startWaiting(e.ctx(), b, acquire(b.Semaphore(name, 4), 1, false))
	e.checkNoneIn(waiters[2:], one, two)
	e.release(lease)
	e.release(one)
	e.release(two)
	e.releaseAll(append(waiters[2:], next))
	e.release(e.take(acquire(s, 2, true))) // the name is not in use any more: the first caller decides
}

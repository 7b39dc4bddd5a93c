package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Resize leaves the holders their permits and the waiters their place. That includes goroutines
// that wait behind others of their process, which have not asked the server yet.
func resizing() []test {
	return []test{
		{"goroutines go on when there are more", resizeGrows, 0},
		{"goroutines go on when there are fewer", resizeShrinks, 0},
		{"the old number is refused to new callers", resizeOldNumber, 0},
	}
}

// crowd starts six goroutines that wait for n permits each, one after the other.
func (e *env) crowd(c *client, s *holdfast.Semaphore, n int64) (waiters []*waiter) {
	e.Helper()
	for range 6 {
		waiters = append(waiters, e.waitIn(e.ctx(), c, acquire(s, n, false)))
	}
	return waiters
}

// none fails if one of the waiters is in, or gave up.
func (e *env) none(waiters []*waiter) {
	e.Helper()
	for i, w := range waiters {
		if w.over() {
			e.Fatalf("the %dth of those that have to wait is in, or gave up: %v", i+1, w.err)
		}
	}
}

// inOrder lets the waiters in one after the other: as many as there is room for at once, and the
// next when the first of them releases.
func (e *env) inOrder(waiters []*waiter, room int) {
	e.Helper()
	var held []*holdfast.Lease
	for i, w := range waiters {
		held = append(held, w.in())
		if len(held) == room {
			e.none(waiters[i+1:])
			e.release(held[0])
			held = held[1:]
		}
	}
	e.release(held...)
}

// inUse holds a permit until end is called. The name is in use meanwhile, and keeps its number.
func (e *env) inUse(s *holdfast.Semaphore) (end func()) {
	lease := e.take(acquire(s, 1, true))
	return func() { e.release(lease) }
}

// has fails unless the name has so many permits, all of them taken.
func (e *env) has(permits int64) {
	e.Helper()
	e.is(e.tried(acquire(e.client().Semaphore(name, permits), 1, true)), holdfast.ErrHeld)
}

func resizeGrows(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(acquire(a.Semaphore(name, 2), 2, true))
	waiters := e.crowd(b, b.Semaphore(name, 2), 1)
	e.ok(e.resize(a.Semaphore(name, 2), 5))
	one, two, three := waiters[0].in(), waiters[1].in(), waiters[2].in()
	e.none(waiters[3:])
	e.has(5)
	e.checkHeld(lease)
	e.release(two)
	e.release(three)
	e.inOrder(waiters[3:], 2)
	e.release(one)
	e.release(lease)
}

// Holders keep more permits than now exist, and no waiter enters before enough are given back.
func resizeShrinks(e *env) {
	a, b := e.client(), e.client()
	s := a.Semaphore(name, 4)
	end := e.inUse(s)
	one, two := e.take(acquire(s, 2, true)), e.take(acquire(s, 1, true))
	waiters := e.crowd(b, b.Semaphore(name, 4), 1)
	e.ok(e.resize(s, 3))
	e.has(3)
	e.none(waiters)
	e.ok(e.resize(s, 2))
	e.release(one)
	e.has(2)
	e.none(waiters)
	e.checkHeld(two)
	e.release(two)
	e.inOrder(waiters, 1)
	end()
	e.release(e.take(acquire(a.Semaphore(name, 3), 3, true))) // the first caller decides again
}

// The library cannot tell a handle from before the Resize from one of a program that disagrees. A
// try is refused at once, and so is any call once its process has learned of the Resize. Goroutines
// that have waited since before the Resize go on.
func resizeOldNumber(e *env) {
	a, b := e.client(), e.client()
	s := b.Semaphore(name, 2)
	lease := e.take(acquire(a.Semaphore(name, 2), 2, true))
	waiters := e.crowd(b, s, 1)
	e.ok(e.resize(a.Semaphore(name, 2), 4))
	e.mismatched(e.tried(acquire(s, 1, true)), 2, 4)
	one, two := waiters[0].in(), waiters[1].in()
	b.await(holdfast.EventRetried, 1) // the third has asked, and learned of it
	e.mismatched(e.tried(acquire(s, 1, true)), 2, 4)
	for range 2 {
		e.mismatched(second(s.Acquire(e.ctx(), 1)), 2, 4)
		e.mismatched(second(b.Semaphore(name, 2, holdfast.WithPolling(time.Millisecond, 0)).Acquire(e.ctx(), 1)), 2, 4)
		e.mismatched(second(b.Semaphore(name, 2, holdfast.WithStrictOrder()).Acquire(e.ctx(), 1)), 2, 4)
	}
	next := e.waitIn(e.ctx(), b, acquire(b.Semaphore(name, 4), 1, false))
	e.none(waiters[2:])
	e.release(lease)
	e.release(one)
	e.release(two)
	e.releaseAll(append(waiters[2:], next))
	e.release(e.take(acquire(s, 2, true))) // the name is not in use any more: the first caller decides
}

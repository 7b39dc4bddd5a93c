package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Resize leaves the holders their permits and the waiters their place. That includes goroutines
// that wait behind others of their process, which have not asked the server yet.
func resizing() []test {
	return []test{
		{"goroutines go on when there are more", resizeGrows, 0},
		{"goroutines go on when there are fewer", resizeShrinks, 0},
		{"goroutines go on when the first of them give up", resizeGiveUp, 0},
		{"goroutines that want more than there are go on", resizeBelowWeight, queue},
		{"goroutines in strict order go on", resizeStrict, 0},
		{"goroutines that poll go on", resizePolling, 0},
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

// inAnyOrder is inOrder for a backend that promises no order.
func (e *env) inAnyOrder(waiters []*waiter, room int) {
	e.Helper()
	left := slices.Clone(waiters)
	for len(left) > 0 {
		var in []*waiter
		if !soon(func() bool {
			in = slices.DeleteFunc(slices.Clone(left), func(w *waiter) bool { return !w.over() })
			return len(in) >= min(room, len(left))
		}) || len(in) > room {
			e.Fatalf("of %d waiters %d are in, and there is room for %d", len(left), len(in), room)
		}
		e.release(in[0].in())
		left = slices.DeleteFunc(left, func(w *waiter) bool { return w == in[0] })
	}
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

// The first goroutine gives up, in the queue since before the Resize; later one that has learned of
// it. The next goroutine takes their place.
func resizeGiveUp(e *env) {
	a, b := e.client(), e.client()
	s := a.Semaphore(name, 3)
	defer e.inUse(s)()
	lease := e.take(acquire(s, 2, true))
	var waiters []*waiter
	var cancels []context.CancelFunc
	for range 6 {
		ctx, cancel := context.WithCancel(e.ctx())
		defer cancel()
		waiters = append(waiters, e.waitIn(ctx, b, acquire(b.Semaphore(name, 3), 1, false)))
		cancels = append(cancels, cancel)
	}
	e.ok(e.resize(s, 2))
	cancels[0]()
	waiters[0].gaveUp(context.Canceled)
	e.release(lease) // the second stands at its place
	lease = waiters[1].in()
	b.await(holdfast.EventRetried, 1) // the third has asked, and learned of it
	cancels[2]()
	waiters[2].gaveUp(context.Canceled)
	e.none(waiters[3:])
	e.release(lease)
	e.inOrder(waiters[3:], 1)
}

// A waiter that wants more permits than now exist gets in when nobody else holds.
func resizeBelowWeight(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(acquire(a.Semaphore(name, 5), 1, true))
	all := e.take(acquire(a.Semaphore(name, 5), 4, true))
	waiters := e.crowd(b, b.Semaphore(name, 5), 3)
	e.ok(e.resize(a.Semaphore(name, 5), 2))
	e.release(all)
	e.none(waiters)
	e.release(lease)
	for i, w := range waiters {
		lease := w.in()
		e.has(2)
		if left := waiters[i+1:]; len(left) > 0 {
			b.await(holdfast.EventRetried, 1) // the second has asked, and the others know what it learned
			e.none(left)
		}
		e.release(lease)
	}
	e.release(e.take(acquire(a.Semaphore(name, 2), 2, true)))
}

// fewerAndMore resizes a semaphore of three, all of which are taken, to two and then to four: there
// is room for one more. In between it gets its three again.
func (e *env) fewerAndMore(s *holdfast.Semaphore, wait func() []*waiter, in func([]*waiter)) {
	e.Helper()
	defer e.inUse(s)()
	lease := e.take(acquire(s, 2, true))
	waiters := wait()
	e.ok(e.resize(s, 2))
	e.none(waiters)
	e.release(lease)
	in(waiters)

	e.ok(e.resize(s, 3))
	lease = e.take(acquire(s, 2, true))
	waiters = wait()
	e.ok(e.resize(s, 4))
	in(waiters)
	e.release(lease)
}

// Each waiter stands in the queue itself. Without a queue, it asks again and again.
func resizeStrict(e *env) {
	a, b := e.client(), e.client()
	e.fewerAndMore(a.Semaphore(name, 3), func() []*waiter {
		return e.crowd(b, b.Semaphore(name, 3, holdfast.WithStrictOrder()), 1)
	}, func(waiters []*waiter) {
		if e.backend.NoQueue {
			e.inAnyOrder(waiters, 1)
			return
		}
		e.inOrder(waiters, 1)
	})
}

func resizePolling(e *env) {
	a, b := e.client(), e.client()
	e.fewerAndMore(a.Semaphore(name, 3), func() []*waiter {
		return e.crowd(b, b.Semaphore(name, 3, holdfast.WithPolling(5*time.Millisecond, 0)), 1)
	}, func(waiters []*waiter) { e.inAnyOrder(waiters, 1) })
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

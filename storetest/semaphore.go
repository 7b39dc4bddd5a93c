package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func semaphore() []test {
	return []test{
		{"that leaves its process", ticketPermits, 0},
		{"never more than there are", neverMore, 0},
		{"a try tells who holds", semaphoreHeld, 0},
		{"another number of permits", mismatch, 0},
		{"resizing what is not in use", resizeUnused, 0},
		{"first come, first served between goroutines", semaphoreOrder, 0},
		{"goroutines that want different numbers", differentWeights, queue},
		{"is not entered", notEntered, 0},
		{"resized while somebody waits and the holder is gone", semaphoreResizeOutlivesHolder, queue},
		{"Do", semaphoreDo, 0},
		{"the most there can be", mostPermits, 0},
	}
}

// acquire returns a method that takes n permits.
func acquire(s *holdfast.Semaphore, n int64, try bool) locks {
	return func(ctx context.Context) (*holdfast.Lease, error) {
		if try {
			return s.TryAcquire(ctx, n)
		}
		return s.Acquire(ctx, n)
	}
}

// resize sets the number of permits. Doing it again does no harm.
func (e *env) resize(s *holdfast.Semaphore, n int64) error {
	return e.answer(func() error { return s.Resize(e.ctx(), n) })
}

// take takes permits that are free, or will be.
func (e *env) take(lock locks) *holdfast.Lease {
	e.Helper()
	lease, err := e.had(lock)
	if err != nil {
		e.Fatalf("taking: %v", err)
	}
	return lease
}

// Rule 1 holds by weight, for clients and goroutines, some trying.
func neverMore(e *env) {
	const permits, rounds = 5, 10
	var taken atomic.Int64
	var all sync.WaitGroup
	for i := range 3 {
		c := e.client()
		for j := range 4 {
			all.Go(func() {
				for k := range rounds {
					n := int64(i+j+k)%permits + 1
					lease, err := acquire(c.Semaphore(name, permits), n, j == 0)(e.ctx())
					if j == 0 && (errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable)) {
						continue
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
				}
			})
		}
	}
	all.Wait()
}

func semaphoreHeld(e *env) {
	a, b := e.client(label("A")), e.client()
	one, two := e.take(acquire(a.Semaphore(name, 3), 1, false)), e.take(acquire(a.Semaphore(name, 3), 1, false))
	var held *holdfast.HeldError
	if err := e.tried(acquire(b.Semaphore(name, 3), 2, true)); !errors.As(err, &held) || held.Kind != "semaphore" ||
		held.Holder != "A" ||
		held.Holders != 2 || held.Name != name || held.Remaining <= 0 {
		e.Errorf("got %v", err)
	}
	e.release(one)
	e.release(e.take(acquire(b.Semaphore(name, 3), 2, true)))
	e.release(two)
}

// mismatched fails unless an error says both numbers.
func (e *env) mismatched(err error, want, have int64) {
	e.Helper()
	if bad := e.refused(err, "permits"); bad != nil &&
		(bad.Problems[0].Value != want || !strings.Contains(err.Error(), fmt.Sprint(have))) {
		e.Errorf("%v does not say %d and %d", err, want, have)
	}
}

func mismatch(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(acquire(a.Semaphore(name, 3), 1, true))
	for _, n := range []int64{2, 4, 1 << 31} {
		e.mismatched(e.tried(acquire(b.Semaphore(name, n), 1, true)), n, 3)
		e.mismatched(second(b.Semaphore(name, n).Acquire(e.ctx(), 1)), n, 3)
		e.mismatched(b.Semaphore(name, n).Do(e.ctx(), 1, func(context.Context) error { e.Error("it ran"); return nil }),
			n, 3)
	}
	e.release(e.take(acquire(b.Semaphore(name, 3), 2, true))) // nothing was changed
	e.release(lease)
	e.release(e.take(acquire(b.Semaphore(name, 4), 4, true)))
}

func resizeUnused(e *env) {
	c := e.client()
	if err := e.resize(c.Semaphore(name, 3), 5); err != nil {
		e.Errorf("Resize: %v", err)
	}
	e.release(e.take(acquire(c.Semaphore(name, 3), 3, true))) // the first caller decides
}

// A Resize is not forgotten when the last hold ends by itself, as long as a waiter is there.
func semaphoreResizeOutlivesHolder(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	one := e.take(acquire(a.Semaphore(name, 4, holdfast.WithTTL(roomy), holdfast.WithoutRenewal()), 4, true))
	w := e.waitIn(e.ctx(), b, acquire(b.Semaphore(name, 4), 3, false))
	e.ok(e.resize(a.Semaphore(name, 4), 2))
	e.lost(e.ended(leased.Context(one)), holdfast.LossExpired)
	lease := w.in() // more permits than now exist, and alone
	e.is(e.tried(acquire(c.Semaphore(name, 2), 1, true)), holdfast.ErrHeld)
	e.release(lease)
	e.release(e.take(acquire(c.Semaphore(name, 2), 2, true)))
}

func semaphoreOrder(e *env) {
	c := e.client()
	s := c.Semaphore(name, 2)
	lease := e.take(acquire(s, 2, true))
	waiters := e.crowd(c, s, 2)
	e.release(lease)
	e.inOrder(waiters, 1)
}

// Each caller gets the permits that it asked for, whichever caller led or waited before it.
func differentWeights(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(acquire(b.Semaphore(name, 3), 3, true))
	s := a.Semaphore(name, 3)
	one, all := e.waitIn(e.ctx(), a, acquire(s, 1, false)), e.waitIn(e.ctx(), a, acquire(s, 3, false))
	e.release(lease)
	first := one.in()
	if all.over() {
		e.Error("all three are taken, and one more")
	}
	e.release(first)
	last := all.in()
	e.is(e.tried(acquire(b.Semaphore(name, 3), 1, true)), holdfast.ErrHeld)
	e.release(last)
}

// Permits are counted, not owned: under a lease's context an acquire takes other permits.
func notEntered(e *env) {
	c := e.client()
	s := c.Semaphore(name, 2)
	one := e.take(acquire(s, 1, true))
	two, err := e.had(with(leased.Context(one), acquire(s, 1, true)))
	if err != nil {
		e.Fatalf("TryAcquire: %v", err)
	}
	e.is(e.tried(with(leased.Context(two), acquire(s, 1, true))), holdfast.ErrHeld)
	e.release(one)
	e.is(e.tried(with(leased.Context(two), acquire(s, 2, true))), holdfast.ErrHeld)
	e.release(two)
}

func semaphoreDo(e *env) {
	a, b := e.client(), e.client()
	failed := errors.New("failed")
	err := a.Semaphore(name, 2).Do(e.ctx(), 2, func(ctx context.Context) error {
		e.is(e.tried(acquire(b.Semaphore(name, 2), 1, true)), holdfast.ErrHeld)
		return errors.Join(failed, ctx.Err())
	})
	e.is(err, failed)
	e.release(e.take(acquire(b.Semaphore(name, 2), 2, true)))
}

func mostPermits(e *env) {
	c := e.client()
	e.release(e.take(acquire(c.Semaphore(name, 1<<31), 1<<31, true)))
}

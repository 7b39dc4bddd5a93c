package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

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

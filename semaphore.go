package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Semaphore is a name with a number of permits, of which each holder takes some. The queue is
// first come, first served: smaller requests that would fit do not pass a large request. Every hold
// has its own expiry. If a holder crashes, its permits return when its TTL is over.
//
// The number of permits belongs to the name. While the name is in use, a call with another number
// gets an *ArgumentError that says both numbers. Resize changes the number, and a handle with the
// old one then gets that error. An Acquire may join goroutines of its process whose wait began
// before the Resize. It may then get in as they do.
//
// A semaphore is not entered under a lease's context. Each Acquire takes permits of its own, and
// may wait for ever for those that its caller has.
type Semaphore struct {
	lock    *engine.Lock
	permits int64
	err     error // what is wrong with its arguments
	noCopy  noCopy
}

const maxPermits = 1 << 31

// Semaphore makes a handle on a name of so many permits, from 1 to 2^31, as Client says.
func (c *Client) Semaphore(name string, permits int64, options ...Option) *Semaphore {
	if c == nil || c.engine == nil {
		return &Semaphore{err: zeroHandleError("Semaphore", "a client that New made")}
	}
	s, err := c.newSettings("Semaphore", name, options)
	err = joinArguments(checkPermits(handleText("Semaphore", name), permits), err)
	if err != nil {
		return &Semaphore{err: err}
	}
	spec := protocol.Spec{Name: name, Kind: protocol.Semaphore, Label: s.label, Shared: true, Permits: permits}
	return &Semaphore{lock: c.engine.NewLock(spec, s.Options), permits: permits}
}

// Acquire waits until n permits are held, from 1 to all. The lease gives them back together. All
// else is as for Mutex.Lock. If the name is in use with another number of permits, the error is an
// *ArgumentError. A Resize during the wait is no error.
func (s *Semaphore) Acquire(ctx context.Context, n int64) (*Lease, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	inner, err := s.lock.Weigh(n).Acquire(ctx)
	return newLease("Semaphore", s.lock, inner, err)
}

// TryAcquire asks once for n permits. The error is a *HeldError if fewer permits are free or a
// contender waits. All else is as for Acquire and Mutex.TryLock.
func (s *Semaphore) TryAcquire(ctx context.Context, n int64) (*Lease, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	inner, err := s.lock.Weigh(n).Try(ctx)
	return newLease("Semaphore", s.lock, inner, err)
}

// Do runs fn while n permits are held, as Mutex.Do does.
func (s *Semaphore) Do(ctx context.Context, n int64, fn func(context.Context) error) error {
	return do(ctx, "Semaphore.Do", func(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, n) }, fn)
}

// TryDo asks once for n permits, and runs fn as Mutex.TryDo does.
func (s *Semaphore) TryDo(ctx context.Context, n int64, fn func(context.Context) error) error {
	try := func(ctx context.Context) (*Lease, error) { return s.TryAcquire(ctx, n) }
	return do(ctx, "Semaphore.TryDo", try, fn)
}

// Resize changes how many permits the name has, from 1 to 2^31, in one round trip, and lets in the
// waiters that fit now. Holders keep their permits, even if there are fewer now. Waiters keep their
// place and get no error, in every process. A waiter that wants more permits than now exist gets in
// when nobody else holds.
//
// While the name is not in use there is nothing to change, and a former change is forgotten: the
// next request for permits decides. A name is in use while a holder has permits or a waiter stands
// in the server's queue. Of the goroutines of a process that wait alike, only the first stands
// there.
//
// The errors are those of every call. After a *StoreError that says so, the number may have been
// changed. Resize may be called again.
func (s *Semaphore) Resize(ctx context.Context, permits int64) error {
	if err := s.check(ctx, 1); err != nil {
		return err
	}
	if err := checkPermits(handleText("Semaphore", s.lock.Spec().Name)+".Resize", permits); err != nil {
		return err
	}
	return publicError("resize", s.lock.Spec().Name, s.lock.Resize(ctx, permits))
}

// check refuses a handle that no client made, a nil context, and bad numbers.
func (s *Semaphore) check(ctx context.Context, n int64) error {
	if s == nil {
		return zeroHandleError("Semaphore", "made by Client.Semaphore")
	}
	if err := checkHandle(ctx, "Semaphore", s.lock != nil, s.err); err != nil {
		return err
	}
	if n >= 1 && n <= s.permits {
		return nil
	}
	call := handleText("Semaphore", s.lock.Spec().Name)
	return badArgument(call, "n", n, fmt.Sprintf("from 1 to the permits, %d", s.permits))
}

func checkPermits(call string, permits int64) error {
	if permits >= 1 && permits <= maxPermits {
		return nil
	}
	return badArgument(call, "permits", permits, "from 1 to 2147483648")
}

func permitsText(have int64) string {
	return fmt.Sprintf("%d, as many as the name has while it is in use", have)
}

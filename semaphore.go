package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Semaphore is a name with a number of permits, of which each holder takes some. The line is first come, first served: a
// large request is not passed by smaller ones that would fit. Every hold has an expiry of its own; the permits of a
// holder that crashed return when its TTL is over.
//
// The number of permits belongs to the name. While the name is in use, a call with another number
// gets an *ArgumentError that says both. Resize changes the number. A call that waits meanwhile
// goes on waiting, under the new number, and gets no error.
//
// After a Resize a handle with the old number no longer fits, and a new call with it gets that
// *ArgumentError. The library cannot tell such a handle from one of a program that was configured
// with another number, and two programs that disagree must learn of it. An Acquire that joins
// goroutines of its process, in a wait that began before the Resize, may get in as they do.
//
// A semaphore is not entered under a lease's context: each Acquire takes permits of its own, and may wait for ever for
// those that its caller has. Handles have no state of their own, are cheap, and safe for concurrent use. The zero
// Semaphore and nil return errors.
type Semaphore struct {
	lock    *engine.Lock
	permits int64
	err     error // what is wrong with its arguments
	noCopy  noCopy
}

const maxPermits = 1 << 31

// Semaphore makes a handle on a name of so many permits: from 1 to 2^31. It sends nothing and cannot fail: what is wrong with
// the permits, the name (1 byte to 1 KiB, any bytes) or the options is an *ArgumentError from each of its methods.
func (c *Client) Semaphore(name string, permits int64, options ...Option) *Semaphore {
	if c == nil || c.engine == nil {
		return &Semaphore{err: zeroHandle("Semaphore", "a client that New made")}
	}
	s, err := c.settled("Semaphore", name, options)
	err = joinArguments(wrongPermits(named("Semaphore", name), permits), err)
	if err != nil {
		return &Semaphore{err: err}
	}
	spec := protocol.Spec{Name: name, Kind: protocol.Semaphore, Label: s.label, Shared: true, Permits: permits}
	return &Semaphore{lock: c.engine.Lock(spec, s.Options), permits: permits}
}

// Acquire waits until n permits are held, from 1 to all. The waiting is bounded by ctx alone: while the server is away,
// Acquire goes on asking. The lease gives them back together.
//
// The error is a *WaitError when ctx ended the waiting, ErrHeld when polling ran out, ErrClosed, a *StoreError for a refusal that
// waiting does not cure (see Mutex.Lock), or an *ArgumentError, also when the name is in use with
// another number of permits. A Resize during the wait is no error. After an error nothing is held:
// what was queued or won meanwhile is taken back in the background.
func (s *Semaphore) Acquire(ctx context.Context, n int64) (*Lease, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	inner, err := s.lock.Weigh(n).Acquire(ctx)
	return leased("Semaphore", s.lock, inner, err)
}

// TryAcquire asks once for n permits, in one round trip. The error is a *HeldError, which matches ErrHeld, when fewer are free or
// somebody waits; a *StoreError when the server cannot be asked or refuses; else as Acquire's. After an error nothing
// is held; if the answer was lost, what may have been won is taken back in the background.
func (s *Semaphore) TryAcquire(ctx context.Context, n int64) (*Lease, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	inner, err := s.lock.Weigh(n).Try(ctx)
	return leased("Semaphore", s.lock, inner, err)
}

// Do runs fn while n permits are held, as Mutex.Do does.
func (s *Semaphore) Do(ctx context.Context, n int64, fn func(context.Context) error) error {
	return do(ctx, "Semaphore.Do", func(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, n) }, fn)
}

// Resize changes how many permits the name has, from 1 to 2^31, in one round trip, and lets in the
// waiters that fit now. Holders keep their permits, also when there are fewer now. Waiters keep
// their place and get no error, in every process, also those that wait behind others of theirs. A
// waiter that wants more permits than now exist gets in when nobody else holds.
//
// A new call needs a handle with the new number afterwards. With the old one it gets an
// *ArgumentError that says both: see Semaphore for why.
//
// While the name is not in use there is nothing to change, and what was changed is forgotten: the
// next request for permits decides. A name is in use while anybody holds permits or stands in the
// server's line. Of the goroutines of a process that wait alike, only the first stands there.
//
// The error is an *ArgumentError, a *StoreError, a *WaitError if ctx was over, or ErrClosed. After a
// *StoreError that says so the number may have been changed, and doing it again does no harm.
func (s *Semaphore) Resize(ctx context.Context, permits int64) error {
	if err := s.check(ctx, 1); err != nil {
		return err
	}
	if err := wrongPermits(named("Semaphore", s.lock.Spec().Name)+".Resize", permits); err != nil {
		return err
	}
	return public("resize", s.lock.Spec().Name, s.lock.Resize(ctx, permits))
}

// check refuses handles, contexts and numbers that are none.
func (s *Semaphore) check(ctx context.Context, n int64) error {
	if s == nil {
		return zeroHandle("Semaphore", "made by Client.Semaphore")
	}
	if err := usable(ctx, "Semaphore", s.lock != nil, s.err); err != nil {
		return err
	}
	var bad problems
	bad.check(n >= 1 && n <= s.permits, "n", n, fmt.Sprintf("from 1 to the permits, %d", s.permits))
	return bad.err(named("Semaphore", s.lock.Spec().Name))
}

func wrongPermits(call string, permits int64) error {
	var bad problems
	bad.check(permits >= 1 && permits <= maxPermits, "permits", permits, "from 1 to 2147483648")
	return bad.err(call)
}

func permitsOf(have int64) string {
	return fmt.Sprintf("%d, as many as the name has while it is in use", have)
}

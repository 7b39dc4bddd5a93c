package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Mutex is a name that one holder at a time can hold.
type Mutex struct {
	lock   *engine.Lock
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// Mutex makes a handle, as Client says.
func (c *Client) Mutex(name string, options ...Option) *Mutex {
	if c == nil || c.engine == nil {
		return &Mutex{err: zeroHandleError("Mutex", "a client that New made")}
	}
	s, err := c.newSettings("Mutex", name, options)
	if err != nil {
		return &Mutex{err: err}
	}
	spec := protocol.Spec{Name: name, Kind: protocol.Mutex, Owner: s.owner, Label: s.label}
	return &Mutex{lock: c.engine.NewLock(spec, s.Options)}
}

// Lock waits until the mutex is held. Only ctx, and WithWait or Config.Wait, bound the waiting:
// while the server is away, Lock goes on asking. Under the context of a lease of the same name,
// Lock enters that hold at once, if the hold is not over. Otherwise the caller is a new contender,
// with a new token.
//
// After an error nothing is held. The place in the queue, or a hold that was won meanwhile, is
// given back in the background. The error is a *WaitError if ctx ended the waiting, if the time to
// wait was over, or if WithDeadlockCheck found a deadlock. It matches ErrHeld if polling ran out.
// Otherwise it is one of every call.
//
// A *StoreError is a refusal that waiting does not cure: of kind StoreDenied or StoreForeign at any
// time, of StoreUnsupported or StoreOther before Lock is queued. After every other refusal Lock
// goes on.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return m.wrapLease(m.lock.Acquire(ctx))
}

// TryLock asks once, in one round trip; up to six times if the holder may not use its hold, as
// WithRetain says. The error is a *HeldError, which matches ErrHeld, if another contender holds the
// mutex or waits for it. It is a *StoreError if the server refuses, or does not answer within the
// smaller of a sixth of the TTL and 1 s. The first request of a client has up to 1 s more. All else
// is as for Lock. If the answer was lost, what the request may have won is taken back in the
// background.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return m.wrapLease(m.lock.Try(ctx))
}

// Do runs fn while the mutex is held. The context of fn ends with ctx, and when the lease is lost;
// its cause is then a *LostError. A deadline of ctx bounds the waiting and fn together, WithWait
// the waiting alone. Do gives the lock back when fn returns or panics. LeaseFrom returns the lease
// to fn, which may release it earlier: the context of fn then ends.
//
// If fn was not called, the error is that of Lock. Otherwise it is that of fn. It is joined with
// the *LostError if the lease was lost meanwhile, or with ErrUncertain if it may have been. A
// release that fails otherwise goes to the observer only: the lock is free when its TTL is over.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "Mutex.Do", m.Lock, fn)
}

// TryDo asks once, and runs fn as Do does if the mutex is held. If fn was not called, the error is
// that of TryLock: one that matches ErrHeld says that the mutex is busy.
func (m *Mutex) TryDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "Mutex.TryDo", m.TryLock, fn)
}

// Ask asks the holder to let go, as Client.Ask does, in one request.
func (m *Mutex) Ask(ctx context.Context) (told int, err error) {
	if err := m.check(ctx); err != nil {
		return 0, err
	}
	holds, err := m.lock.Tell(ctx)
	return countTold(m.lock.Spec().Name, holds, err)
}

// check refuses a handle that no client made, a nil context, and a handle with bad arguments.
func (m *Mutex) check(ctx context.Context) error {
	if m == nil {
		return zeroHandleError("Mutex", "made by Client.Mutex")
	}
	return checkHandle(ctx, "Mutex", m.lock != nil, m.err)
}

// wrapLease translates what the engine answers.
func (m *Mutex) wrapLease(inner *engine.Lease, err error) (*Lease, error) {
	return newLease("Mutex", m.lock, inner, err)
}

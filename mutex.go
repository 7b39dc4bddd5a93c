package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Mutex is a name that one at a time can hold. Handles have no state of their own, are cheap, and safe for
// concurrent use; any number may be made of one name. The zero Mutex and nil return errors.
type Mutex struct {
	lock   *engine.Lock
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// Mutex makes a handle. It sends nothing and cannot fail: what is wrong with the name (1 byte to 1 KiB, any bytes) or the
// options is an *ArgumentError from each of its methods.
func (c *Client) Mutex(name string, options ...Option) *Mutex {
	if c == nil || c.engine == nil {
		return &Mutex{err: zeroHandle("Mutex", "a client that New made")}
	}
	s, err := c.settled("Mutex", name, options)
	if err != nil {
		return &Mutex{err: err}
	}
	spec := protocol.Spec{Name: name, Kind: protocol.Mutex, Owner: s.owner, Label: s.label}
	return &Mutex{lock: c.engine.Lock(spec, s.Options)}
}

// Lock waits until the mutex is held. The waiting is bounded by ctx alone: while the server is away, Lock goes on
// asking. Under the context of a lease of the same name it enters that hold at once, if the hold is not over; else the
// caller is a new contender, with a new token.
//
// The error is a *WaitError when ctx ended the waiting, ErrHeld when polling ran out, ErrClosed, an
// *ArgumentError, or a *StoreError for a refusal that waiting does not cure. After an error nothing
// is held: what was queued or won meanwhile is taken back in the background.
//
// These refusals end the waiting at once: a wrong password or a missing permission (StoreDenied), a
// key of another type, kind or format (StoreForeign), a command that the server lacks
// (StoreUnsupported), and an error that the library does not know (StoreOther). Once Lock stands in
// the server's queue, only the first two do. Lock waits for the end of all others, and TryLock
// returns them: a server that loads its data, is read-only, has no memory left (OOM), cannot
// persist (MISCONF) or has too few replicas, and a cluster that is down.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return m.lease(m.lock.Acquire(ctx))
}

// TryLock asks once, in one round trip. The error is a *HeldError, which matches ErrHeld, when another holds the mutex or
// somebody waits for it; a *StoreError when the server cannot be asked, does not answer for a sixth of the TTL or a second,
// or refuses; else as Lock's. After an error nothing is held; if the answer was lost, what may have been won is taken
// back in the background.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	return m.lease(m.lock.Try(ctx))
}

// Do runs fn while the mutex is held. The context that fn gets ends with ctx, and when the lease is lost; then its cause
// is a *LostError. The lock is given back when fn returns or panics. The error is Lock's, when fn was not
// called; else fn's, joined with the *LostError if the lease was lost meanwhile. A release that fails after fn is told
// to the observer only: the lock is then free when its TTL is over.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "Mutex.Do", m.Lock, fn)
}

// Resume takes over a hold from another process, which let it go on purpose: owner and token are what Lease.Owner and
// Lease.Token said there. The new lease has a larger token, the full TTL and the options of this handle.
//
// The old lease is lost: its cause is a *LostError with LossReplaced, and its release returns it. Its process learns of it by message
// if it listens, as it does while it waits for locks, and else at its next renewal. Until then the old lease is trusted beside the
// new one: let its process stop using it first. All others are kept out until that process has ended the old lease, or until the old lease's TTL
// is over, also if the new lease is released before. A min hold of the old lease goes on to keep others out, but not this caller.
//
// The error is ErrHeld when there is no such hold: it is over, or has been resumed by another caller, or other holds of its owner exclude
// this one. Else it is as TryLock's. After an error the hold is as it was. If the error says that the request may have been
// applied, the hold may be gone for everybody. Three answers must be lost for that.
func (m *Mutex) Resume(ctx context.Context, owner string, token int64) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	var bad problems
	bad.check(owner != "" && len(owner) <= maxText, "owner", shortened(owner), "from 1 to 1024 bytes")
	bad.check(token > 0 && token < 1<<53, "token", token, "above 0, below 2^53")
	if err := bad.err("Mutex.Resume"); err != nil {
		return nil, err
	}
	return m.lease(m.lock.Resume(ctx, owner, token))
}

// check refuses handles and contexts that are none.
func (m *Mutex) check(ctx context.Context) error {
	if m == nil {
		return zeroHandle("Mutex", "made by Client.Mutex")
	}
	return usable(ctx, "Mutex", m.lock != nil, m.err)
}

// lease is the public form of what the engine answers.
func (m *Mutex) lease(inner *engine.Lease, err error) (*Lease, error) {
	return leased("Mutex", m.lock, inner, err)
}

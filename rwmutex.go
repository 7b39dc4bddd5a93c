package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An RWMutex is a name that many holders can hold to read, or one holder to write. The queue is
// first come, first served. A writer waits for the readers before it, and no reader passes it, with
// one exception: readers of a process that already reads may enter for at most 5 ms. Readers that
// stand together enter together. Each reader's hold has its own expiry. A reader that crashed
// therefore keeps other contenders out no longer than its own TTL.
//
// Readers of one process share one hold, and its token, for up to 5 ms after the grant. They cost
// no request. With a fixed lease, a min hold, a max hold, an owner or strict order, a handle asks
// for each reader. Handles of one name may differ in all options, so reading and writing may have
// options of their own.
//
// A call under the context of a lease of the same name enters that hold. A lease that writes can be
// entered to read or to write, and a lease that reads can be entered to read. Writing under a lease
// that only reads is an *ArgumentError, because two such callers would wait for each other for
// ever. A goroutine that reads without such a context and reads again may wait for ever behind a
// writer, as with sync.RWMutex.
//
// With WithOwner, processes of one owner do not exclude each other. Beside a hold of the owner that
// writes, they enter to read or to write. Beside a hold of the owner that reads, they enter to
// read, also before a writer that waits. Writing beside a hold that reads is an *ArgumentError.
//
// Handles have no state of their own, are cheap, and are safe for concurrent use. The zero RWMutex
// and nil return errors.
type RWMutex struct {
	write  *engine.Lock
	read   *engine.Lock
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// RWMutex makes a handle. It sends nothing and cannot fail. If the name (1 byte to 1 KiB, any
// bytes) or an option is bad, each method of the handle returns an *ArgumentError.
func (c *Client) RWMutex(name string, options ...Option) *RWMutex {
	if c == nil || c.engine == nil {
		return &RWMutex{err: zeroHandle("RWMutex", "a client that New made")}
	}
	s, err := c.settled("RWMutex", name, options)
	if err != nil {
		return &RWMutex{err: err}
	}
	spec := protocol.Spec{Name: name, Kind: protocol.ReadWrite, Owner: s.owner, Label: s.label}
	shared := spec
	shared.Shared = true
	return &RWMutex{write: c.engine.Lock(spec, s.Options), read: c.engine.Lock(shared, s.Options)}
}

// Lock waits until the name is held to write: no other holder is left. All else is as for
// Mutex.Lock. In two cases the error is an *ArgumentError, without any wait: ctx belongs to a lease
// that only reads this name, or the owner (WithOwner) only reads it. After an error nothing is held
// by this call.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.write.Acquire(ctx)
	return leased("RWMutex", m.write, inner, err)
}

// TryLock asks once to write, in one round trip. The error is a *HeldError, which matches ErrHeld,
// if others hold the name or wait for it. All other errors are as for Lock and Mutex.TryLock. After
// an error nothing is held by this call.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.write.Try(ctx)
	return leased("RWMutex", m.write, inner, err)
}

// Do runs fn while the name is held to write, as Mutex.Do does.
func (m *RWMutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "RWMutex.Do", m.Lock, fn)
}

// RLock waits until the name is held to read: other contenders may read too, and none writes. The
// errors are those of Mutex.Lock. After an error nothing is held by this call. The place in the
// queue, or a hold that was won meanwhile, is given back in the background.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.read.Acquire(ctx)
	return leased("RWMutex", m.read, inner, err)
}

// TryRLock asks once to read, in one round trip, or in none if this process reads already. The
// error is a *HeldError, which matches ErrHeld, if another holder writes or a contender waits. All
// other errors are as for RLock and Mutex.TryLock. After an error nothing is held by this call.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.read.Try(ctx)
	return leased("RWMutex", m.read, inner, err)
}

// RDo runs fn while the name is held to read, as Mutex.Do does.
func (m *RWMutex) RDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "RWMutex.RDo", m.RLock, fn)
}

// check refuses a handle that no client made, a nil context, and a handle with bad arguments.
func (m *RWMutex) check(ctx context.Context) error {
	if m == nil {
		return zeroHandle("RWMutex", "made by Client.RWMutex")
	}
	return usable(ctx, "RWMutex", m.write != nil, m.err)
}

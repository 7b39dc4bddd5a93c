package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An RWMutex is a name that many holders can hold to read, or one holder to write. The queue is
// first come, first served. A writer waits for the readers before it, and no reader passes it, with
// one exception: readers of a process that already reads may enter for at most 5 ms. Each reader's
// hold has its own expiry, so a reader that crashed keeps others out no longer than its own TTL.
//
// Readers of one process share one hold and its token, without a request, for up to 5 ms after the
// grant. With a fixed lease, a min hold, a max hold, an owner or strict order, a handle asks for
// each reader. Handles of one name may differ in all options.
//
// A lease that writes can be entered, under its context, to read or to write. A lease that reads
// can be entered to read. To write under it is an *ArgumentError, because two such callers would
// wait for each other for ever. A goroutine that reads again without such a context may wait for
// ever behind a writer, as with sync.RWMutex.
//
// The same is true of an owner (WithOwner): beside a hold of its own that writes, it may read or
// write. Beside one that reads, it may read, also before a writer that waits.
type RWMutex struct {
	write  *engine.Lock
	read   *engine.Lock
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// RWMutex makes a handle, as Client says.
func (c *Client) RWMutex(name string, options ...Option) *RWMutex {
	if c == nil || c.engine == nil {
		return &RWMutex{err: zeroHandleError("RWMutex", "a client that New made")}
	}
	s, err := c.newSettings("RWMutex", name, options)
	if err != nil {
		return &RWMutex{err: err}
	}
	spec := protocol.Spec{Name: name, Kind: protocol.ReadWrite, Owner: s.owner, Label: s.label}
	shared := spec
	shared.Shared = true
	return &RWMutex{write: c.engine.NewLock(spec, s.Options), read: c.engine.NewLock(shared, s.Options)}
}

// Lock waits until the name is held to write: no other holder is left. All else is as for
// Mutex.Lock. The error is an *ArgumentError, without any wait, if ctx or the owner only reads this
// name.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.write.Acquire(ctx)
	return newLease("RWMutex", m.write, inner, err)
}

// TryLock asks once to write. All else is as for Lock and Mutex.TryLock.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.write.Try(ctx)
	return newLease("RWMutex", m.write, inner, err)
}

// Do runs fn while the name is held to write, as Mutex.Do does.
func (m *RWMutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "RWMutex.Do", m.Lock, fn)
}

// TryDo asks once to write, and runs fn as Mutex.TryDo does.
func (m *RWMutex) TryDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "RWMutex.TryDo", m.TryLock, fn)
}

// RLock waits until the name is held to read: other contenders may read too, and none writes. All
// else is as for Mutex.Lock.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.read.Acquire(ctx)
	return newLease("RWMutex", m.read, inner, err)
}

// TryRLock asks once to read, without a request if this process reads already. The error is a
// *HeldError if another holder writes or a contender waits. All else is as for Mutex.TryLock.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.read.Try(ctx)
	return newLease("RWMutex", m.read, inner, err)
}

// RDo runs fn while the name is held to read, as Mutex.Do does.
func (m *RWMutex) RDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "RWMutex.RDo", m.RLock, fn)
}

// TryRDo asks once to read, and runs fn as Mutex.TryDo does.
func (m *RWMutex) TryRDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "RWMutex.TryRDo", m.TryRLock, fn)
}

// check refuses a handle that no client made, a nil context, and a handle with bad arguments.
func (m *RWMutex) check(ctx context.Context) error {
	if m == nil {
		return zeroHandleError("RWMutex", "made by Client.RWMutex")
	}
	return checkHandle(ctx, "RWMutex", m.write != nil, m.err)
}

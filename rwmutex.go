package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An RWMutex is a name that many can hold to read, or one to write. The line is first come, first served: a writer waits for the
// readers before it, and no reader passes it, but for those of a process that already reads, for at most 5 ms;
// readers that stand together enter together. Each reader's hold has an expiry of its own, so that one who crashed
// keeps nobody out longer than its own TTL.
//
// Readers of one process share one hold, and its token, for up to 5 ms after it was granted: they cost no request. A handle
// with a fixed lease, min or max hold, an owner or strict order asks for each reader. Handles of one name may differ
// in all options, so reading and writing may have their own.
//
// Under the context of a lease, the same name is entered: reading under either, writing under a lease that writes.
// Writing under a lease that only reads is an *ArgumentError, because two who did that would wait for each other for ever.
// A goroutine that reads without such a context and reads again may wait for ever behind a writer, as with sync.RWMutex.
//
// With WithOwner, processes of one owner do not exclude each other: they enter beside a hold of their own, reading or writing
// under a hold that writes, and reading beside a hold that reads, also before a writer that waits. Writing beside a hold that
// reads is an *ArgumentError.
//
// Handles have no state of their own, are cheap, and safe for concurrent use. The zero RWMutex and nil return errors.
type RWMutex struct {
	write  *engine.Lock
	read   *engine.Lock
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// RWMutex makes a handle. It sends nothing and cannot fail: what is wrong with the name (1 byte to 1 KiB, any bytes) or the
// options is an *ArgumentError from each of its methods.
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

// Lock waits until the name is held to write: nobody else holds it. All else as Mutex.Lock says; the error is an
// *ArgumentError, and nothing was waited for, under the context of a lease that only reads this name, and for an owner
// (WithOwner) that only reads it.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.write.Acquire(ctx)
	return leased("RWMutex", m.write, inner, err)
}

// TryLock asks once to write, in one round trip. The error is a *HeldError, which matches ErrHeld, when others hold the name
// or stand in line; else as Lock's. After an error nothing is held.
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

// RLock waits until the name is held to read: others may read too, nobody writes. The error is that of Mutex.Lock.
// After an error nothing is held: what was queued or won meanwhile is taken back in the background.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	inner, err := m.read.Acquire(ctx)
	return leased("RWMutex", m.read, inner, err)
}

// TryRLock asks once to read, in one round trip or, where this process reads already, in none. The error is a *HeldError, which
// matches ErrHeld, when somebody writes or stands in line; else as RLock's. After an error nothing is held.
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

// check refuses handles and contexts that are none.
func (m *RWMutex) check(ctx context.Context) error {
	if m == nil {
		return zeroHandle("RWMutex", "made by Client.RWMutex")
	}
	return usable(ctx, "RWMutex", m.write != nil, m.err)
}

package holdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Locker returns the mutex as a sync.Locker, for code that knows no other lock. Prefer Do or Lock
// where the code can be changed. Code between Lock and Unlock has no fencing token, and is not told
// of a loss: it runs on while another holder may be in. Only Unlock finds out, and tells onError.
//
// Lock returns only with the lock held. Only ctx bounds the waiting: WithWait, Config.Wait and the
// attempts of WithPolling do not end it. If Lock cannot have the lock, it calls onError and then
// panics with the same error, that of Mutex.Lock. Nothing is held then.
//
// Unlock gives the lock back, also when ctx is over. An error of Lease.Release goes to onError. The
// Locker is unlocked in every case. An Unlock without Lock panics with an error that matches
// ErrNotHeld. onError may be nil. It is called in the goroutine of the call that failed.
//
// A Locker is for all goroutines of a process: one may call Lock, and another Unlock. They exclude
// each other also after a loss: the next Lock returns after the Unlock of the goroutine that lost.
//
// If ctx belongs to a lease of the same name, each Lock enters that hold. The goroutines that share
// the Locker still exclude each other, but not the code that holds the lease, or another Locker
// under it. The same is true of WithOwner and other callers of that owner. When the lease ends,
// Lock panics.
func (m *Mutex) Locker(ctx context.Context, onError func(error)) sync.Locker {
	if onError == nil {
		onError = func(error) {}
	}
	return &locker{mutex: m.withoutPollingEnd(), ctx: ctx, onError: onError, holder: make(chan struct{}, 1)}
}

// withoutPollingEnd returns the mutex without an end of polling.
func (m *Mutex) withoutPollingEnd() *Mutex {
	if m == nil || m.lock == nil {
		return m
	}
	return &Mutex{lock: m.lock.Endless(), err: m.err}
}

// A locker is a Mutex as a sync.Locker.
type locker struct {
	mutex   *Mutex
	ctx     context.Context
	onError func(error)
	holder  chan struct{} // has one element from the end of Lock until Unlock
	lease   atomic.Pointer[Lease]
}

// Lock implements sync.Locker.
func (l *locker) Lock() {
	for began := time.Now(); ; {
		lease, err := l.mutex.Lock(l.ctx)
		if err != nil {
			l.failLock(err)
		}
		if l.keepLease(lease) {
			return
		}
		_ = lease.Release() // the observer hears of an error
		if l.ctx.Err() != nil {
			ended := &engine.WaitFailure{Err: protocol.EndOf(l.ctx), Waited: time.Since(began), Answered: true}
			l.failLock(publicError("lock", lease.Name(), ended))
		}
	}
}

// keepLease makes a lease that of the present holder, and reports whether it did. The goroutine
// that holds now must have called Unlock before. Leases of one owner, entries into one hold, and
// the successor of a lease that was lost wait for that. A lease that is over by then is not kept.
func (l *locker) keepLease(lease *Lease) bool {
	select {
	case l.holder <- struct{}{}:
	case <-lease.Done():
		return false
	case <-l.ctx.Done():
		return false
	}
	if lease.Err() != nil {
		<-l.holder
		return false
	}
	l.lease.Store(lease)
	return true
}

// failLock reports an error, and ends the caller.
func (l *locker) failLock(err error) {
	l.onError(err)
	panic(err)
}

// errUnlocked is the panic of an Unlock without Lock.
var errUnlocked = composeErrors(": ", errors.New(prefix+"Unlock of an unlocked Locker"), ErrNotHeld)

// Unlock implements sync.Locker.
func (l *locker) Unlock() {
	lease := l.lease.Swap(nil)
	if lease == nil {
		panic(errUnlocked)
	}
	<-l.holder
	if err := lease.Release(); err != nil {
		l.onError(err)
	}
}

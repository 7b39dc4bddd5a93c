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

// Locker returns the mutex as a sync.Locker, for code that knows no other lock. Such code gets less
// than a Lease gives. Prefer Do or Lock where the code can be changed:
//
//   - No context ends when the lease is lost. Code between Lock and Unlock is not told of the loss,
//     and runs on while another holder may be in. Only Unlock finds out, and tells onError.
//   - There is no fencing token. Storage therefore cannot refuse a holder that is late.
//   - Unlock cannot return an error. If nobody listens to onError, nobody learns of a loss or of a
//     release that is uncertain.
//
// Lock returns only with the lock held. While the server is away, or cannot serve now, Lock goes on
// asking. Only ctx bounds the waiting: WithWait, Config.Wait and the attempts of WithPolling do not
// end it. If Lock cannot have the lock, it calls onError and then panics with the same error. The
// error is that of Mutex.Lock: a *WaitError once ctx is over, ErrClosed, an *ArgumentError, or
// a *StoreError or *QuorumError that waiting does not cure. Nothing is held then.
//
// Unlock gives the lock back, as Lease.Release does, also when ctx is over. The error of a release
// goes to onError: the *LostError of a lease that was lost, an error that matches ErrUncertain, a
// *StoreError, or ErrClosed. The Locker is unlocked in every case, so Lock may be called again. An
// Unlock without Lock panics with an error that matches ErrNotHeld. It does not call onError.
//
// onError may be nil. The observer then gets the events of a release as always, and the panic of
// Lock carries the error. onError is called in the goroutine of the call that failed.
//
// A Locker is for all goroutines of a process, as a sync.Mutex is: one may call Lock, and another
// Unlock. They exclude each other also after a loss: the next Lock returns after the Unlock of the
// goroutine that lost. Two Lockers exclude each other as two callers of Mutex.Lock do.
//
// If ctx belongs to a lease of the same name, each Lock enters the hold of that lease, with the
// same token. The goroutines that share the Locker still exclude each other. They do not exclude
// the code that holds the lease, or another Locker under it. The same is true of WithOwner and
// other callers of that owner. When the lease ends, its context is over, and Lock panics.
func (m *Mutex) Locker(ctx context.Context, onError func(error)) sync.Locker {
	if onError == nil {
		onError = func(error) {}
	}
	return &locker{mutex: m.endless(), ctx: ctx, onError: onError, holder: make(chan struct{}, 1)}
}

// endless returns the mutex without an end of polling.
func (m *Mutex) endless() *Mutex {
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
			l.fail(err)
		}
		if l.keep(lease) {
			return
		}
		_ = lease.Release() // the observer hears of an error
		if l.ctx.Err() != nil {
			ended := &engine.WaitEnded{Err: protocol.EndOf(l.ctx), Waited: time.Since(began), Answered: true}
			l.fail(public("lock", lease.Name(), ended))
		}
	}
}

// keep makes a lease that of the present holder, and tells whether it did. Leases of one owner,
// entries into one hold, and the successor of a lease that was lost wait until the goroutine that
// holds now has called Unlock. A lease that is over by then is not kept.
func (l *locker) keep(lease *Lease) bool {
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

// fail tells of an error, and ends the caller.
func (l *locker) fail(err error) {
	l.onError(err)
	panic(err)
}

// errUnlocked is the panic of an Unlock without Lock.
var errUnlocked = compose(": ", errors.New(prefix+"Unlock of an unlocked Locker"), ErrNotHeld)

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

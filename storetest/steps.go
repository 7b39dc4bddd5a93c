package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

const name = "order:42"

// A lockFunc takes a lease, as Mutex.Lock and Mutex.TryLock do.
type lockFunc func(context.Context) (*holdfast.Lease, error)

// take takes what is free, or will be.
func (e *env) take(lock lockFunc) *holdfast.Lease {
	e.Helper()
	lease, err := e.lockWhenFree(lock)
	if err != nil {
		e.Fatalf("taking: %v", err)
	}
	return lease
}

// lock takes a mutex that is free, or will be.
func (e *env) lock(m *holdfast.Mutex) *holdfast.Lease {
	e.Helper()
	return e.take(m.Lock)
}

// tryLock takes a mutex that must be free.
func (e *env) tryLock(m *holdfast.Mutex) *holdfast.Lease {
	e.Helper()
	return e.take(m.TryLock)
}

// release gives leases back. A lease that a message handed over is trusted for half a second,
// until its first renewal, and a request is answered within a second. If the process or the server
// stood still for so long, the lease was lost, or its release is not certain, and the rest is
// cleaned up in the background. On a fake clock nothing stands still.
func (e *env) release(leases ...*holdfast.Lease) {
	e.Helper()
	for _, lease := range leases {
		e.releaseOne(lease)
	}
}

func (e *env) releaseOne(lease *holdfast.Lease) {
	e.Helper()
	began := time.Now()
	err := lease.Release()
	if err == nil {
		return
	}
	if !e.hasFakeClock() && e.stoodStill(lease, err, time.Since(began)) {
		e.vague.Store(true)
		return
	}
	e.Errorf("Release: %v", err)
}

// stoodStill reports whether a release that took so long may have failed because its process or
// server stood still: for the time of a request, or, of a lease that was handed over, for the
// claim.
func (e *env) stoodStill(lease *holdfast.Lease, err error, took time.Duration) bool {
	const shortest = 100 * time.Millisecond / 6 // the time of a request with the least TTL
	_, handed := e.handed.Load(lease)
	if errors.Is(err, holdfast.ErrUncertain) {
		return handed || took >= shortest
	}
	var lost *holdfast.LostError
	return handed && errors.As(err, &lost) && (lost.Reason == holdfast.LossExpired || lost.Reason == holdfast.LossGone)
}

// hasFakeClock reports whether the case runs on a fake clock.
func (e *env) hasFakeClock() bool { return e.backend.Around != nil }

func (e *env) busyError(m *holdfast.Mutex) *holdfast.HeldError {
	e.Helper()
	return e.heldError(m.TryLock)
}

// heldError makes an attempt at what another must hold.
func (e *env) heldError(lock lockFunc) *holdfast.HeldError {
	e.Helper()
	lease, err := e.lockUntilAnswered(lock)
	var held *holdfast.HeldError
	if lease != nil || !errors.As(err, &held) || !errors.Is(err, holdfast.ErrHeld) {
		e.Fatalf("an attempt at what another holds: %v, %v", lease, err)
	}
	return held
}

// checkFree takes a mutex and gives it back at once: nobody holds it.
func (e *env) checkFree(m *holdfast.Mutex) {
	e.Helper()
	e.release(e.tryLock(m))
}

// askUntilAnswered asks again while the server could not be asked. On a busy machine an answer may
// take longer than a request may last, and these tests are not about that.
func (e *env) askUntilAnswered(ask func() error) (err error) {
	soon(func() bool {
		err = ask()
		unavailable := errors.Is(err, holdfast.ErrUnavailable)
		if unavailable {
			e.vague.Store(true)
		}
		return !unavailable
	})
	return err
}

func (e *env) lockUntilAnswered(lock lockFunc) (lease *holdfast.Lease, err error) {
	err = e.askUntilAnswered(func() error { lease, err = lock(e.ctx()); return err })
	return lease, err
}

// lockWhenFree is lockUntilAnswered for a name that must be free. A former attempt without an
// answer may still hold the name.
func (e *env) lockWhenFree(lock lockFunc) (lease *holdfast.Lease, err error) {
	soon(func() bool {
		lease, err = e.lockUntilAnswered(lock)
		return !errors.Is(err, holdfast.ErrHeld) || !e.vague.Load()
	})
	return lease, err
}

func (e *env) lockError(lock lockFunc) error { return errorOf(e.lockUntilAnswered(lock)) }

func errorOf(_ *holdfast.Lease, err error) error { return err }

// takeUnder takes what must be free, or entered, under the context of a lease.
func (e *env) takeUnder(lease *holdfast.Lease, lock lockFunc) *holdfast.Lease {
	e.Helper()
	return e.take(inContext(leased.Context(lease), lock))
}

// takeFixed takes a mutex for a lease that runs out after the TTL.
func (e *env) takeFixed(c *client, name string, ttl time.Duration) *holdfast.Lease {
	e.Helper()
	return e.lock(c.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(ttl)))
}

// inContext binds a method to a context of its own.
func inContext(ctx context.Context, lock lockFunc) lockFunc {
	return func(context.Context) (*holdfast.Lease, error) { return lock(ctx) }
}

func (e *env) check(lease *holdfast.Lease) error {
	return e.askUntilAnswered(func() error { return lease.Check(e.ctx()) })
}

func (e *env) checkHolds(leases ...*holdfast.Lease) {
	e.Helper()
	for _, lease := range leases {
		if err := e.check(lease); err != nil {
			e.Errorf("Check: %v", err)
		}
	}
}

func checkEqual[T comparable](e *env, fact string, got, want T) {
	e.Helper()
	if got != want {
		e.Errorf("%s: got %v, want %v", fact, got, want)
	}
}

func (e *env) checkIs(err error, targets ...error) {
	e.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			e.Errorf("got %v, want %v", err, target)
		}
	}
}

func (e *env) checkIsNone(err error, targets ...error) {
	e.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			e.Errorf("%v matches %v", err, target)
		}
	}
}

func (e *env) checkStoreError(err error, kind holdfast.StoreKind, mayHaveApplied bool) *holdfast.StoreError {
	e.Helper()
	var failed *holdfast.StoreError
	if !errors.As(err, &failed) {
		e.Fatalf("got %v, want a StoreError that is %s", err, kind)
	}
	checkEqual(e, "kind of the StoreError", failed.Kind, kind)
	checkEqual(e, "may have been applied", failed.MayHaveApplied, mayHaveApplied)
	return failed
}

func (e *env) checkLost(err error, reason holdfast.Reason) {
	e.Helper()
	var lost *holdfast.LostError
	if !errors.As(err, &lost) || !errors.Is(err, holdfast.ErrLost) || lost.Reason != reason {
		e.Errorf("got %v, want a loss because %s", err, reason)
	}
}

// awaitEnd waits for the end of a context and returns its cause.
func (e *env) awaitEnd(ctx context.Context) error {
	e.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		e.Fatal("the context does not end")
	}
	return context.Cause(ctx)
}

func (e *env) awaitLoss(lease *holdfast.Lease, reason holdfast.Reason) {
	e.Helper()
	e.checkLost(e.awaitEnd(leased.Context(lease)), reason)
}

// contend runs rounds in several goroutines of each of several clients, and waits for all of them.
func (e *env) contend(clients, goroutines, rounds int, round func(c *client, goroutine, n int)) {
	var all sync.WaitGroup
	for range clients {
		c := e.client()
		for i := range goroutines {
			all.Go(func() {
				for n := range rounds {
					round(c, i, n)
				}
			})
		}
	}
	all.Wait()
}

type waiter struct {
	e     *env
	done  chan struct{}
	lease *holdfast.Lease
	err   error
	at    time.Time // when Lock returned
}

// startWaiting starts a goroutine in a method that waits for a lease, and returns when that
// goroutine is known to wait. No other caller of the same client may start to wait at the same
// time.
func (e *env) startWaiting(ctx context.Context, c *client, lock lockFunc) *waiter {
	e.Helper()
	waiting := func() int { return len(c.of(holdfast.EventWaiting)) + len(c.of(holdfast.EventWatching)) }
	before := waiting()
	w := e.goTake(ctx, lock)
	if !soon(func() bool { return w.hasReturned() || waiting() > before }) {
		e.Fatal("it neither waits nor returns")
	}
	if w.hasReturned() {
		e.Fatalf("it returned instead of waiting: %v, %v", w.lease, w.err)
	}
	return w
}

// giveUp waits with a method of a client, gives up, and returns the error of that wait.
func (e *env) giveUp(c *client, lock lockFunc) *holdfast.WaitError {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := e.startWaiting(ctx, c, lock)
	cancel()
	return w.awaitGiveUp(context.Canceled)
}

// goTake starts a goroutine in Lock, and does not wait for anything.
func (e *env) goTake(ctx context.Context, lock lockFunc) *waiter {
	w := &waiter{e: e, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = lock(ctx)
		w.at = time.Now()
		e.handed.Store(w.lease, true)
	}()
	return w
}

// goCall is goTake for a call that returns no lease.
func (e *env) goCall(call func() error) *waiter {
	return e.goTake(context.Background(), noLease(call))
}

func noLease(call func() error) lockFunc {
	return func(context.Context) (*holdfast.Lease, error) { return nil, call() }
}

// awaitError waits until the call returns, and returns its error.
func (w *waiter) awaitError() error {
	w.e.Helper()
	return errorOf(w.awaitResult())
}

func (w *waiter) hasReturned() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *waiter) awaitResult() (*holdfast.Lease, error) {
	w.e.Helper()
	select {
	case <-w.done:
	case <-time.After(2 * patience):
		w.e.Fatal("Lock does not return")
	}
	return w.lease, w.err
}

func (w *waiter) await() *holdfast.Lease {
	w.e.Helper()
	lease, err := w.awaitResult()
	if err != nil {
		w.e.Fatalf("Lock: %v", err)
	}
	return lease
}

// releaseAll gives back what waiters get, one after the other.
func (e *env) releaseAll(waiters []*waiter) {
	e.Helper()
	for _, w := range waiters {
		e.release(w.await())
	}
}

// awaitGiveUp waits until Lock returns the error of a wait that its context ended.
func (w *waiter) awaitGiveUp(standard error) *holdfast.WaitError {
	w.e.Helper()
	lease, err := w.awaitResult()
	reason := holdfast.WaitContext
	if errors.Is(standard, holdfast.ErrWaitOver) {
		reason = holdfast.WaitOver
	}
	var ended *holdfast.WaitError
	if lease != nil || !errors.As(err, &ended) {
		w.e.Fatalf("a wait that ended: %v, %v; want a WaitError", lease, err)
	}
	checkEqual(w.e, "reason of a wait that ended", ended.Reason, reason)
	w.e.checkIs(err, standard)
	w.e.checkIsNone(err, holdfast.ErrHeld)
	return ended
}

package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

const name = "order:42"

// lock takes a mutex that is free, or will be.
func (e *env) lock(m *holdfast.Mutex) *holdfast.Lease {
	e.Helper()
	lease := e.take(m.Lock)
	return lease
}

// try takes a mutex that must be free.
func (e *env) try(m *holdfast.Mutex) *holdfast.Lease {
	e.Helper()
	lease, err := e.had(m.TryLock)
	if err != nil {
		e.Fatalf("TryLock: %v", err)
	}
	return lease
}

// release gives leases back. A lease that a message handed over is trusted for half a second,
// until its first renewal, and a release takes no longer than trust lasts. If the process or the
// server stood still for so long, the lease was lost, or its release is not certain, and the rest
// is cleaned up in the background. On a fake clock nothing stands still.
func (e *env) release(leases ...*holdfast.Lease) {
	e.Helper()
	for _, lease := range leases {
		e.releaseOne(lease)
	}
}

func (e *env) releaseOne(lease *holdfast.Lease) {
	e.Helper()
	err := lease.Release()
	_, handed := e.handed.Load(lease)
	var lost *holdfast.LostError
	switch {
	case err == nil:
	case handed && e.backend.Around == nil && (errors.Is(err, holdfast.ErrUncertain) || errors.As(err, &lost) &&
		lost.Reason == holdfast.LossExpired):
		e.vague.Store(true)
	default:
		e.Errorf("Release: %v", err)
	}
}

// held tries a mutex that another must hold.
func (e *env) held(m *holdfast.Mutex) *holdfast.HeldError {
	e.Helper()
	lease, err := e.reach(m.TryLock)
	var held *holdfast.HeldError
	if lease != nil || !errors.As(err, &held) || !errors.Is(err, holdfast.ErrHeld) {
		e.Fatalf("TryLock of what another holds: %v, %v", lease, err)
	}
	return held
}

// free takes a mutex and gives it back at once: nobody holds it.
func (e *env) free(m *holdfast.Mutex) {
	e.Helper()
	e.release(e.try(m))
}

// answer asks again while the server could not be asked. On a busy machine an answer may take
// longer than a request may last, and these tests are not about that.
func (e *env) answer(ask func() error) (err error) {
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

// reach makes an attempt until there is an answer.
func (e *env) reach(lock locks) (lease *holdfast.Lease, err error) {
	err = e.answer(func() error { lease, err = lock(e.ctx()); return err })
	return lease, err
}

// had is reach for a name that must be free. A former attempt without an answer may still hold the
// name.
func (e *env) had(lock locks) (lease *holdfast.Lease, err error) {
	soon(func() bool {
		lease, err = e.reach(lock)
		return !errors.Is(err, holdfast.ErrHeld) || !e.vague.Load()
	})
	return lease, err
}

// tried returns the error of an attempt.
func (e *env) tried(lock locks) error { return second(e.reach(lock)) }

func second(_ *holdfast.Lease, err error) error { return err }

// with binds a method to a context of its own.
func with(ctx context.Context, lock locks) locks {
	return func(context.Context) (*holdfast.Lease, error) { return lock(ctx) }
}

// check asks the server whether a lease is held.
func (e *env) check(lease *holdfast.Lease) error {
	return e.answer(func() error { return lease.Check(e.ctx()) })
}

// checkHeld fails unless the server has the holds of leases.
func (e *env) checkHeld(leases ...*holdfast.Lease) {
	e.Helper()
	for _, lease := range leases {
		if err := e.check(lease); err != nil {
			e.Errorf("Check: %v", err)
		}
	}
}

// is fails unless err matches all of the targets.
func (e *env) is(err error, targets ...error) {
	e.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			e.Errorf("got %v, want %v", err, target)
		}
	}
}

// lost fails unless err is a *LostError for this reason.
func (e *env) lost(err error, reason holdfast.Reason) {
	e.Helper()
	var lost *holdfast.LostError
	if !errors.As(err, &lost) || !errors.Is(err, holdfast.ErrLost) || lost.Reason != reason {
		e.Errorf("got %v, want a loss because %s", err, reason)
	}
}

// ended waits for the end of a context and returns its cause.
func (e *env) ended(ctx context.Context) error {
	e.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		e.Fatal("the context does not end")
	}
	return context.Cause(ctx)
}

// A waiter is a goroutine in Lock.
type waiter struct {
	e     *env
	done  chan struct{}
	lease *holdfast.Lease
	err   error
	at    time.Time // when Lock returned
}

// wait starts a goroutine in Lock, and returns when that goroutine is known to wait. No other
// caller of the same client may start to wait at the same time.
func (e *env) wait(ctx context.Context, c *client, m *holdfast.Mutex) *waiter {
	e.Helper()
	return e.waitIn(ctx, c, m.Lock)
}

// waitIn is wait for any method that waits for a lease.
func (e *env) waitIn(ctx context.Context, c *client, lock locks) *waiter {
	e.Helper()
	waiting := func() int { return len(c.of(holdfast.EventWaiting)) + len(c.of(holdfast.EventWatching)) }
	before := waiting()
	w := e.enterIn(ctx, lock)
	if !soon(func() bool { return w.over() || waiting() > before }) {
		e.Fatal("it neither waits nor returns")
	}
	if w.over() {
		e.Fatalf("it returned instead of waiting: %v, %v", w.lease, w.err)
	}
	return w
}

// locks is a method that takes a lease, such as Mutex.Lock.
type locks func(context.Context) (*holdfast.Lease, error)

// enter starts a goroutine in Lock.
func (e *env) enter(ctx context.Context, m *holdfast.Mutex) *waiter { return e.enterIn(ctx, m.Lock) }

func (e *env) enterIn(ctx context.Context, lock locks) *waiter {
	w := &waiter{e: e, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = lock(ctx)
		w.at = time.Now()
		e.handed.Store(w.lease, true)
	}()
	return w
}

// start starts a goroutine in a call that returns no lease.
func (e *env) start(call func() error) *waiter { return e.enterIn(context.Background(), noLease(call)) }

// waits is waitIn for a call that returns no lease.
func (e *env) waits(c *client, call func() error) *waiter {
	e.Helper()
	return e.waitIn(context.Background(), c, noLease(call))
}

func noLease(call func() error) locks {
	return func(context.Context) (*holdfast.Lease, error) { return nil, call() }
}

// failure waits until the call returns, and returns its error.
func (w *waiter) failure() error {
	w.e.Helper()
	return second(w.result())
}

// over reports whether Lock has returned.
func (w *waiter) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// result waits until Lock returns.
func (w *waiter) result() (*holdfast.Lease, error) {
	w.e.Helper()
	select {
	case <-w.done:
	case <-time.After(2 * patience):
		w.e.Fatal("Lock does not return")
	}
	return w.lease, w.err
}

// in waits until Lock returns a lease.
func (w *waiter) in() *holdfast.Lease {
	w.e.Helper()
	lease, err := w.result()
	if err != nil {
		w.e.Fatalf("Lock: %v", err)
	}
	return lease
}

// releaseAll gives back what waiters get, one after the other.
func (e *env) releaseAll(waiters []*waiter) {
	e.Helper()
	for _, w := range waiters {
		e.release(w.in())
	}
}

// gaveUp waits until Lock returns the error of a wait that its context ended.
func (w *waiter) gaveUp(standard error) *holdfast.WaitError {
	w.e.Helper()
	lease, err := w.result()
	reason := holdfast.WaitContext
	if errors.Is(standard, holdfast.ErrWaitOver) {
		reason = holdfast.WaitOver
	}
	var ended *holdfast.WaitError
	if lease != nil || !errors.As(err, &ended) || ended.Reason != reason || !errors.Is(err, standard) ||
		errors.Is(err, holdfast.ErrHeld) {
		w.e.Fatalf("a wait that ended: %v, %v; want a WaitError that is %v", lease, err, standard)
	}
	return ended
}

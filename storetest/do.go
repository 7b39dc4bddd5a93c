package storetest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func do() []test {
	return []test{
		{"runs while it is held", doRuns, 0},
		{"waits its turn", doWaits, 0},
		{"gives back on a panic", doPanics, 0},
		{"gives back on Goexit", doExits, 0},
		{"ends with the caller's context", doCancelled, 0},
		{"joins the loss", doLost, 0},
		{"does not run what cannot be locked", doHeld, 0},
		{"ends when the client is closed", doClosed, 0},
	}
}

// A runner is a method that runs a function while a lock is held.
type runner func(context.Context, func(context.Context) error) error

// runners returns all such methods, by the name that each of them locks.
func (e *env) runners(c *client) map[string]runner {
	all := map[string]runner{
		"mutex": c.Mutex("mutex").Do, "leader": c.Election("leader").Run, "group": c.All([]string{"group", "z"}).Do,
		"writer": c.RWMutex("writer").Do, "reader": c.RWMutex("reader").RDo,
	}
	if !e.backend.NoSemaphores {
		all["permits"] = func(ctx context.Context, fn func(context.Context) error) error {
			return c.Semaphore("permits", 2).Do(ctx, 2, fn)
		}
	}
	return all
}

var errFn = errors.New("the function's own")

func doRuns(e *env) {
	a, b := e.client(), e.client()
	for name, run := range e.runners(a) {
		var held context.Context
		err := run(context.WithValue(e.ctx(), contextKey{}, "value"), func(ctx context.Context) error {
			held = ctx
			lease := e.leaseOf(ctx)
			if lease.Name() != name || lease.Token() == 0 != e.backend.NoTokens ||
				lease.Tokens()[name] != lease.Token() || ctx.Value(contextKey{}) != "value" {
				e.Errorf("%s: got a lease of %q with %v", name, lease.Name(), lease.Tokens())
			}
			e.checkHolds(lease)
			e.checkState(b, name, lockinfo.StateHeld)
			return errors.Join(errFn, ctx.Err())
		})
		if e.checkIs(err, errFn); errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrNotHeld) ||
			errors.Is(err, context.Canceled) || held.Err() == nil {
			e.Errorf("%s: got %v, and its context: %v", name, err, held.Err())
		}
		e.checkFree(b.Mutex(name))
	}
}

func doWaits(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	done := make(chan error, 1)
	go func() { done <- b.Mutex(name).Do(e.ctx(), func(context.Context) error { return lease.Err() }) }()
	b.await(holdfast.EventWaiting, 1)
	e.release(lease)
	e.checkIs(<-done, holdfast.ErrNotHeld) // it ran when the lease had been given back
}

func doPanics(e *env) {
	a, b := e.client(), e.client()
	for name, run := range e.runners(a) {
		func() {
			defer func() {
				if recover() != "boom" {
					e.Errorf("%s: the panic does not go on", name)
				}
			}()
			_ = run(e.ctx(), func(context.Context) error { panic("boom") })
		}()
		e.checkFree(b.Mutex(name))
	}
	e.must(a.Election("leader").Check())
}

// FailNow of a test ends its goroutine in this way.
func doExits(e *env) {
	a, b := e.client(), e.client()
	for name, run := range e.runners(a) {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = run(e.ctx(), func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-gone
		e.checkFree(b.Mutex(name))
	}
}

// It is held until the function returns.
func doCancelled(e *env) {
	a, b := e.client(), e.client()
	for name, run := range e.runners(a) {
		ctx, cancel := context.WithCancelCause(e.ctx())
		err := run(ctx, func(held context.Context) error {
			cancel(errCaller)
			e.checkIs(e.awaitEnd(held), errCaller)
			e.checkState(b, name, lockinfo.StateHeld)
			return context.Cause(held)
		})
		if e.checkIs(err, errCaller); errors.Is(err, holdfast.ErrLost) {
			e.Errorf("%s: %v: nothing was lost", name, err)
		}
		e.checkFree(b.Mutex(name))
	}
}

// Trap 6: the caller can tell both errors apart.
func doLost(e *env) {
	c := e.client()
	m := c.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(ttl))
	fault := errors.New("half done")
	err := m.Do(e.ctx(), func(held context.Context) error {
		e.checkLost(e.awaitEnd(held), holdfast.LossExpired)
		return fault
	})
	e.checkIs(err, fault)
	e.checkLost(err, holdfast.LossExpired)
	err = m.Do(e.ctx(), func(held context.Context) error { e.awaitEnd(held); return nil })
	e.checkLost(err, holdfast.LossExpired)
	err = m.Do(e.ctx(), func(held context.Context) error { return e.awaitEnd(held) })
	e.checkLost(err, holdfast.LossExpired)
}

func doHeld(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	e.checkIs(b.Mutex(name).Do(ctx, e.never), context.DeadlineExceeded)
	polls := b.Mutex(name, holdfast.WithPolling(time.Millisecond, 2))
	e.checkIs(e.askUntilAnswered(func() error { return polls.Do(e.ctx(), e.never) }), holdfast.ErrHeld)
	e.release(lease)
}

func doClosed(e *env) {
	for name := range e.runners(e.client()) {
		c := e.client()
		e.checkIs(e.runners(c)[name](e.ctx(), func(held context.Context) error {
			e.close(c)
			return e.awaitEnd(held)
		}), holdfast.ErrClosed)
	}
}

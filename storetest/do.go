package storetest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
)

func do() []test {
	return []test{
		{"runs while it is held", doRuns, 0},
		{"waits its turn", doWaits, 0},
		{"returns the error of what it ran", doFails, 0},
		{"gives back on a panic", doPanics, 0},
		{"gives back on Goexit", doExits, 0},
		{"ends with the caller's context", doCancelled, 0},
		{"joins the loss", doLost, 0},
		{"does not run what cannot be locked", doHeld, 0},
		{"ends when the client is closed", doClosed, 0},
	}
}

func doRuns(e *env) {
	a, b := e.client(), e.client()
	var held context.Context
	err := a.Mutex(name).Do(context.WithValue(e.ctx(), contextKey{}, "value"), func(ctx context.Context) error {
		e.busyError(b.Mutex(name))
		held = ctx
		if ctx.Value(contextKey{}) != "value" {
			e.Error("values are not carried")
		}
		return ctx.Err()
	})
	if err != nil || held == nil {
		e.Fatalf("Do: %v, ran %v", err, held != nil)
	}
	if held.Err() == nil {
		e.Error("the context outlives the lock")
	}
	e.checkFree(b.Mutex(name))
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

func doFails(e *env) {
	c := e.client()
	fault := errors.New("no paper")
	err := c.Mutex(name).Do(e.ctx(), func(context.Context) error { return fault })
	if e.checkIs(err, fault); errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrNotHeld) {
		e.Errorf("got %v", err)
	}
	e.checkFree(c.Mutex(name))
}

func doPanics(e *env) {
	a, b := e.client(), e.client()
	func() {
		defer func() {
			if recover() != "boom" {
				e.Error("the panic does not go on")
			}
		}()
		_ = a.Mutex(name).Do(e.ctx(), func(context.Context) error { panic("boom") })
	}()
	e.checkFree(b.Mutex(name))
}

func doCancelled(e *env) {
	a, b := e.client(), e.client()
	ctx, cancel := context.WithCancelCause(e.ctx())
	stop := errors.New("stop")
	err := a.Mutex(name).Do(ctx, func(held context.Context) error {
		cancel(stop)
		return e.awaitEnd(held)
	})
	if e.checkIs(err, stop); errors.Is(err, holdfast.ErrLost) {
		e.Errorf("%v: nothing was lost", err)
	}
	e.checkFree(b.Mutex(name))
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
	never := func(context.Context) error { e.Error("it ran"); return nil }
	e.checkIs(b.Mutex(name).Do(ctx, never), context.DeadlineExceeded)
	polls := b.Mutex(name, holdfast.WithPolling(time.Millisecond, 2))
	e.checkIs(e.askUntilAnswered(func() error { return polls.Do(e.ctx(), never) }), holdfast.ErrHeld)
	e.checkRefused(b.Mutex(name).Do(e.ctx(), nil), "fn")
	e.release(lease)
}

func doClosed(e *env) {
	c := e.client()
	err := c.Mutex(name).Do(e.ctx(), func(held context.Context) error {
		if err := c.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
		return e.awaitEnd(held)
	})
	e.checkIs(err, holdfast.ErrClosed)
}

// FailNow of a test ends its goroutine in this way.
func doExits(e *env) {
	a, b := e.client(), e.client()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = a.Mutex(name).Do(e.ctx(), func(context.Context) error { runtime.Goexit(); return nil })
	}()
	<-gone
	e.checkFree(b.Mutex(name))
}

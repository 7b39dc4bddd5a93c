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
		e.held(b.Mutex(name))
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
	e.free(b.Mutex(name))
}

func doWaits(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	done := make(chan error, 1)
	go func() { done <- b.Mutex(name).Do(e.ctx(), func(context.Context) error { return lease.Err() }) }()
	b.await(holdfast.EventWaiting, 1)
	e.release(lease)
	e.is(<-done, holdfast.ErrNotHeld) // it ran when the lease had been given back
}

func doFails(e *env) {
	c := e.client()
	fault := errors.New("no paper")
	err := c.Mutex(name).Do(e.ctx(), func(context.Context) error { return fault })
	if e.is(err, fault); errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrNotHeld) {
		e.Errorf("got %v", err)
	}
	e.free(c.Mutex(name))
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
	e.free(b.Mutex(name))
}

func doCancelled(e *env) {
	a, b := e.client(), e.client()
	ctx, cancel := context.WithCancelCause(e.ctx())
	stop := errors.New("stop")
	err := a.Mutex(name).Do(ctx, func(held context.Context) error {
		cancel(stop)
		return e.ended(held)
	})
	if e.is(err, stop); errors.Is(err, holdfast.ErrLost) {
		e.Errorf("%v: nothing was lost", err)
	}
	e.free(b.Mutex(name))
}

// Trap 6: the caller can tell both errors apart.
func doLost(e *env) {
	c := e.client()
	m := c.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(ttl))
	fault := errors.New("half done")
	err := m.Do(e.ctx(), func(held context.Context) error {
		e.lost(e.ended(held), holdfast.LossExpired)
		return fault
	})
	e.is(err, fault)
	e.lost(err, holdfast.LossExpired)
	err = m.Do(e.ctx(), func(held context.Context) error { e.ended(held); return nil })
	e.lost(err, holdfast.LossExpired)
	err = m.Do(e.ctx(), func(held context.Context) error { return e.ended(held) })
	e.lost(err, holdfast.LossExpired)
}

func doHeld(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	never := func(context.Context) error { e.Error("it ran"); return nil }
	e.is(b.Mutex(name).Do(ctx, never), context.DeadlineExceeded)
	polls := b.Mutex(name, holdfast.WithPolling(time.Millisecond, 2))
	e.is(e.answer(func() error { return polls.Do(e.ctx(), never) }), holdfast.ErrHeld)
	e.refused(b.Mutex(name).Do(e.ctx(), nil), "fn")
	e.release(lease)
}

func doClosed(e *env) {
	c := e.client()
	err := c.Mutex(name).Do(e.ctx(), func(held context.Context) error {
		if err := c.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
		return e.ended(held)
	})
	e.is(err, holdfast.ErrClosed)
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
	e.free(b.Mutex(name))
}

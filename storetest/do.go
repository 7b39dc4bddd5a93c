package storetest

import (
	"context"
	"errors"
	"runtime"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func do() []test {
	return []test{
		{"runs while it is held", doRuns, 0},
		{"gives back on a panic, and on Goexit", doEnds, 0},
		{"ends with the caller's context", doCancelled, 0},
		{"joins the loss", doLost, 0},
		{"TryDo runs, or says that it is busy", doTry, 0},
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
			if lease.Name() != name || lease.Token() == 0 ||
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

// FailNow of a test ends its goroutine with Goexit.
func doEnds(e *env) {
	a, b := e.client(), e.client()
	for name, run := range e.runners(a) {
		for want, end := range map[any]func(){"boom": func() { panic("boom") }, nil: runtime.Goexit} {
			gone := make(chan any)
			go func() {
				defer func() { gone <- recover() }()
				_ = run(e.ctx(), func(context.Context) error { end(); return nil })
			}()
			if got := <-gone; got != want {
				e.Errorf("%s: the panic does not go on: %v", name, got)
			}
			e.checkFree(b.Mutex(name))
		}
	}
	e.must(a.Election("leader").Check())
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

func doTry(e *env) {
	for kind, of := range map[string]func(*client) runner{
		"mutex":  func(c *client) runner { return c.Mutex("m").TryDo },
		"group":  func(c *client) runner { return c.All([]string{"g", "h"}).TryDo },
		"writer": func(c *client) runner { return c.RWMutex("w").TryDo },
	} {
		a, b := of(e.client()), of(e.client())
		var inside error
		err := e.askUntilAnswered(func() error {
			return a(e.ctx(), func(context.Context) error {
				inside = e.askUntilAnswered(func() error {
					return b(e.ctx(), func(context.Context) error { e.Errorf("%s: two run", kind); return nil })
				})
				return errFn
			})
		})
		e.checkIs(inside, holdfast.ErrHeld)
		e.checkIs(err, errFn)
	}
}

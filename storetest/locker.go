package storetest

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func lockers() []test {
	return []test{
		{"enters the hold of its context", lockerEnters, 0},
	}
}

// panicOf returns the error that a call panics with.
func panicOf(call func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	call()
	return nil
}

func lockerEnters(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	l := a.Mutex(name).Locker(leased.Context(lease), func(err error) { e.Errorf("onError: %v", err) })
	l.Lock()
	e.busyError(b.Mutex(name))
	l.Unlock()
	e.busyError(b.Mutex(name)) // the outer entry is held
	e.release(lease)
	e.checkIs(panicOf(a.Mutex(name).Locker(leased.Context(lease), nil).Lock), context.Canceled)
	e.checkFree(b.Mutex(name))
}

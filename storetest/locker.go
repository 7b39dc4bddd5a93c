package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func lockers() []test {
	return []test{
		{"goroutines and clients exclude each other", lockerExcludes, 0},
		{"panics without the lock", lockerPanics, 0},
		{"enters the hold of its context", lockerEnters, 0},
	}
}

// locker makes a Locker whose onError fails the case. A release may be uncertain where the machine
// stands still.
func (e *env) locker(m *holdfast.Mutex) sync.Locker {
	return m.Locker(e.ctx(), func(err error) {
		if e.backend.Around != nil || !errors.Is(err, holdfast.ErrUncertain) && !errors.Is(err, holdfast.ErrLost) {
			e.Errorf("onError: %v", err)
		}
		e.vague.Store(true)
	})
}

func lockerExcludes(e *env) {
	const rounds = 5
	var inside atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		l := e.locker(e.client().Mutex(name))
		for range 3 {
			all.Go(func() {
				for range rounds {
					l.Lock()
					if n := inside.Add(1); n != 1 {
						e.Errorf("%d hold at once", n)
					}
					inside.Add(-1)
					l.Unlock()
				}
			})
		}
	}
	all.Wait()
	e.free(e.client().Mutex(name))
}

func lockerPanics(e *env) {
	a, b := e.client(), e.client()
	ctx, cancel := context.WithCancel(e.ctx())
	l := a.Mutex(name).Locker(ctx, nil)
	e.is(panicOf(l.Unlock), holdfast.ErrNotHeld)
	lease := e.lock(b.Mutex(name))
	cancel()
	e.is(panicOf(l.Lock), context.Canceled)
	e.held(b.Mutex(name)) // the holder is as it was
	e.release(lease)
	e.free(a.Mutex(name))
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
	e.held(b.Mutex(name))
	l.Unlock()
	e.held(b.Mutex(name)) // the outer entry is held
	e.release(lease)
	e.is(panicOf(a.Mutex(name).Locker(leased.Context(lease), nil).Lock), context.Canceled)
	e.free(b.Mutex(name))
}

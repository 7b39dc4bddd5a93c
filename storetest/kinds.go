package storetest

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A use is a way to hold a name.
type use struct {
	kind  string
	mode  lockinfo.Mode
	try   useFunc
	rival useFunc // waits until others have released
	other useFunc // gets in beside it at once; nil: nobody does
}

// A useFunc is a way to lock a name.
type useFunc func(c *client, name string, options ...holdfast.Option) lockFunc

// useBy returns the use of a method of a type of lock.
func useBy[T any](make func(*holdfast.Client, string, ...holdfast.Option) T,
	method func(T, context.Context) (*holdfast.Lease, error)) useFunc {
	return func(c *client, name string, options ...holdfast.Option) lockFunc {
		return func(ctx context.Context) (*holdfast.Lease, error) {
			return method(make(c.Client, name, options...), ctx)
		}
	}
}

func permits(n int64, try bool) useFunc {
	return func(c *client, name string, options ...holdfast.Option) lockFunc {
		return acquire(c.Semaphore(name, 3, options...), n, try)
	}
}

func (e *env) uses() []use {
	mutex, rw, election := (*holdfast.Client).Mutex, (*holdfast.Client).RWMutex, (*holdfast.Client).Election
	read, write := useBy(rw, (*holdfast.RWMutex).TryRLock), useBy(rw, (*holdfast.RWMutex).Lock)
	all := []use{
		{"mutex", lockinfo.ModeExclusive, useBy(mutex, (*holdfast.Mutex).TryLock),
			useBy(mutex, (*holdfast.Mutex).Lock), nil},
		{"rwmutex", lockinfo.ModeWrites, useBy(rw, (*holdfast.RWMutex).TryLock), write, nil},
		{"rwmutex", lockinfo.ModeReads, read, write, read},
		{"election", lockinfo.ModeExclusive, useBy(election, (*holdfast.Election).TryCampaign),
			useBy(election, (*holdfast.Election).Campaign), nil},
	}
	if !e.backend.NoSemaphores {
		all = append(all, use{"semaphore", lockinfo.ModePermits, permits(2, true), permits(2, false), permits(1, true)})
	}
	return all
}

// The kind is part of the state of a name. A call of another kind is refused, whether it tries or
// would wait, and nothing is touched.
func otherKinds(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, one := range e.uses() {
		lease := e.take(one.try(a, name))
		for _, other := range e.uses() {
			if other.kind == one.kind {
				continue
			}
			e.checkForeign(e.lockError(other.try(b, name)))
		}
		if one.kind != "mutex" {
			e.checkForeign(errorOf(b.Mutex(name).Lock(e.ctx())))
			for _, lock := range []lockFunc{b.All([]string{"a", name}).TryLock, b.All([]string{"a", name}).Lock} {
				e.checkForeign(e.lockError(lock))
			}
			e.checkFree(b.Mutex("a"))
		}
		if one.kind != "semaphore" && !e.backend.NoSemaphores {
			e.checkForeign(errorOf(b.Semaphore(name, 7).Acquire(e.ctx(), 7)))
			e.checkForeign(e.resize(b.Semaphore(name, 7), 3))
		}
		if one.kind != "rwmutex" {
			e.checkForeign(errorOf(b.RWMutex(name).RLock(e.ctx())))
		}
		if one.kind != "election" {
			e.checkForeign(e.leaderError(b.Election(name)))
		}
		// Of other kinds the state has another type, which an embedded server refuses in its words.
		if one.kind == "mutex" && !e.backend.NoLatches {
			for _, call := range latchCalls(b.Latch(name)) {
				e.checkForeign(e.askUntilAnswered(func() error { return call(e.ctx()) }))
			}
		}
		e.checkHolds(lease)
		e.release(lease)
		e.checkFree(c.Mutex(name))
	}
}

package storetest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

func release() []test {
	return []test{
		{"by many at once", releaseByMany, 0},
		{"with a context that is over", releaseOver, 0},
		{"lets the next in", releaseHandsOn, 0},
	}
}

func releaseByMany(e *env) {
	lease := e.lock(e.client().Mutex(name))
	var good atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := lease.Release(); err == nil {
				good.Add(1)
			} else {
				e.checkIs(err, holdfast.ErrNotHeld)
			}
		})
	}
	all.Wait()
	if n := good.Load(); n != 1 {
		e.Errorf("%d released it", n)
	}
}

// Trap 13.
func releaseOver(e *env) {
	a, b := e.client(), e.client()
	taken, cancel := context.WithCancel(context.Background())
	lease := e.take(inContext(taken, a.Mutex(name).Lock))
	cancel()
	if err := lease.Release(); err != nil {
		e.Errorf("Release with the context of Lock, which is over: %v", err)
	}
	e.checkFree(b.Mutex(name))
}

func releaseHandsOn(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	w := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
	e.release(lease)
	next := w.await()
	e.busyError(a.Mutex(name))
	e.checkHolds(next) // the server has the hold, not only a message
	e.release(next)
}

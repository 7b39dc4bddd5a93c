package storetest

import "context"

func release() []test {
	return []test{
		{"with a context that is over", releaseOver, 0},
		{"lets the next in", releaseHandsOn, 0},
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

package storetest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

func polling() []test {
	return []test{
		{"stands in no line", pollingInNoLine, 0},
		{"options keep no state", optionsKeepNoState, 0},
	}
}

func pollingInNoLine(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithCancel(context.Background())
	w := e.startWaitingFor(ctx, b, b.Mutex(name, holdfast.WithPolling(time.Hour, 0)))
	if held := e.busyError(a.Mutex(name)); held.Waiters != 0 {
		e.Errorf("%d stand in the queue", held.Waiters)
	}
	e.release(lease)
	e.checkFree(a.Mutex(name)) // the lock was not handed over
	cancel()
	w.awaitGiveUp(context.Canceled)
}

// Trap 31: the second use of the same options is like the first, on the same handle and on another.
func optionsKeepNoState(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	const interval, attempts = 5 * time.Millisecond, 4
	options := []holdfast.Option{holdfast.WithPolling(interval, attempts), holdfast.WithLabel("twice")}
	m := b.Mutex(name, options...)
	for _, m := range []*holdfast.Mutex{m, m, b.Mutex(name, options...)} {
		began := time.Now()
		if e.heldError(m.Lock); time.Since(began) < (attempts-1)*interval {
			e.Errorf("only %v for %d attempts every %v", time.Since(began), attempts, interval)
		}
	}
	e.release(lease)
	for _, m := range []*holdfast.Mutex{m, m, b.Mutex(name, options...)} {
		lease := e.lock(m)
		if held := e.busyError(a.Mutex(name)); held.Holder != "twice" {
			e.Errorf("held by %q", held.Holder)
		}
		e.release(lease)
	}
}

package storetest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

func pollingInNoLine(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithCancel(context.Background())
	w := e.startWaiting(ctx, b, b.Mutex(name, holdfast.WithPolling(time.Hour, 0)).Lock)
	if held := e.busyError(a.Mutex(name)); held.Waiters != 0 {
		e.Errorf("%d stand in the queue", held.Waiters)
	}
	e.release(lease)
	e.checkFree(a.Mutex(name)) // the lock was not handed over
	cancel()
	w.awaitGiveUp(context.Canceled)
}

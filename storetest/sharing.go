package storetest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

func sharing() []test {
	return []test{
		{"readers wait together", readersWaitTogether, 0},
		{"who gives up leaves the others", sharedGiveUp, 0},
		{"a hold that is lost is lost for all", sharedLost, 0},
	}
}

// One of the readers stands in the queue. All are in when it is, with one token.
func readersWaitTogether(e *env) {
	a, b := e.client(), e.client()
	writer := e.take(b.RWMutex(name).Lock)
	m := a.RWMutex(name)
	var waiters []*waiter
	for range 6 {
		waiters = append(waiters, e.startWaiting(e.ctx(), a, m.RLock))
	}
	e.release(writer)
	var leases []*holdfast.Lease
	for _, w := range waiters {
		leases = append(leases, w.await())
	}
	for _, lease := range leases {
		if lease.Token() != leases[0].Token() || lease.Owner() != leases[0].Owner() {
			e.Errorf("token %d beside %d", lease.Token(), leases[0].Token())
		}
		e.checkIs(e.lockError(b.RWMutex(name).TryLock), holdfast.ErrHeld)
		e.release(lease)
	}
	e.release(e.take(b.RWMutex(name).TryLock))
}

// afterSlice waits until readers of a process no longer join the hold that the process has.
func afterSlice() { <-time.After(10 * time.Millisecond) }

// Trap 20 holds for readers that wait with a leader, and for the leader.
func sharedGiveUp(e *env) {
	a, b := e.client(), e.client()
	m := a.RWMutex(name)
	for leaves := range 3 {
		writer := e.take(b.RWMutex(name).Lock)
		var waiters []*waiter
		ctx, cancel := context.WithCancel(e.ctx())
		for i := range 3 {
			with := e.ctx()
			if i == leaves {
				with = ctx
			}
			waiters = append(waiters, e.startWaiting(with, a, m.RLock))
		}
		cancel()
		waiters[leaves].awaitGiveUp(context.Canceled)
		e.release(writer)
		for i, w := range waiters {
			if i != leaves {
				e.release(w.await())
			}
		}
		e.release(e.take(b.RWMutex(name).Lock))
	}
}

func sharedLost(e *env) {
	a, b := e.client(), e.client()
	m := a.RWMutex(name, holdfast.WithMaxHold(roomy))
	plain := a.RWMutex(name)
	one := e.take(m.RLock)
	inner := e.takeUnder(one, plain.RLock)
	other := e.take(plain.RLock)
	for _, lease := range []*holdfast.Lease{one, inner} {
		e.awaitLoss(lease, holdfast.LossMaxHold)
		e.checkLost(lease.Release(), holdfast.LossMaxHold)
	}
	e.checkHolds(other)
	e.release(other)
	e.release(e.take(b.RWMutex(name).Lock))
}

package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func downgrade() []test {
	return []test{
		{"keeps the lease", downgradeKeeps, 0},
		{"lets them by who wait in the same process", downgradeJoins, queue},
		{"prolongs no lease that ends by itself", downgradeEnds, 0},
		{"keeps a min hold through a crash", downgradeMinHoldCrash, leaves},
	}
}

func (e *env) downgrade(lease *holdfast.Lease) {
	e.Helper()
	e.must(lease.Downgrade(e.ctx()))
}

func downgradeKeeps(e *env) {
	a, b := e.client(), e.client()
	for _, options := range [][]holdfast.Option{nil, {holdfast.WithOwner("o")}, {holdfast.WithStrictOrder()},
		{holdfast.WithTTL(time.Minute)}} {
		lease := e.take(a.RWMutex(name, options...).Lock)
		token, owner := lease.Token(), lease.Owner()
		e.checkIs(e.lockError(b.RWMutex(name).TryRLock), holdfast.ErrHeld)
		e.downgrade(lease)
		if lease.Token() != token || lease.Owner() != owner || lease.Err() != nil ||
			leased.Context(lease).Err() != nil {
			e.Errorf("token %d, then %d; %v, %v", token, lease.Token(), lease.Err(), leased.Context(lease).Err())
		}
		e.checkHolds(lease)
		e.checkRefused(errorOf(a.RWMutex(name).TryLock(leased.Context(lease))), "ctx")
		other := e.take(b.RWMutex(name).TryRLock)
		e.checkIs(e.lockError(b.RWMutex(name).TryLock), holdfast.ErrHeld)
		e.release(lease)
		e.checkIs(lease.Release(), holdfast.ErrNotHeld)
		e.release(other)
		e.release(e.take(b.RWMutex(name).TryLock))
	}
}

// Readers of the process are in at once, even if they stand behind a writer of another process.
// That writer has its turn after the slice.
func downgradeJoins(e *env) {
	a, b := e.client(), e.client()
	m := a.RWMutex(name)
	lease := e.take(m.Lock)
	writer := e.startWaiting(e.ctx(), b, b.RWMutex(name).Lock)
	readers := []*waiter{e.startWaiting(e.ctx(), a, m.RLock), e.startWaiting(e.ctx(), a, m.RLock)}
	e.downgrade(lease)
	for _, w := range readers {
		reader := w.await()
		if reader.Token() != lease.Token() || reader.Owner() != lease.Owner() || writer.hasReturned() {
			e.Errorf("token %d beside %d, a writer is in: %v", reader.Token(), lease.Token(), writer.hasReturned())
		}
		e.release(reader)
	}
	afterSlice()
	late := e.startWaiting(e.ctx(), a, m.RLock)
	e.release(lease)
	e.release(writer.await())
	e.release(late.await())
}

func downgradeEnds(e *env) {
	a, b := e.client(), e.client()
	const ttl, after = 3 * time.Second, 300 * time.Millisecond
	for _, end := range []holdfast.Option{holdfast.WithoutRenewal(), holdfast.WithMaxHold(ttl)} {
		lease := e.take(a.RWMutex(name, holdfast.WithTTL(ttl), end).Lock)
		until := lease.Until()
		<-time.After(after)
		e.downgrade(lease)
		left := e.heldError(b.RWMutex(name).TryLock).Remaining
		if left > ttl-after+slack || lease.Until().After(until) {
			e.Errorf("%v after a grant for %v it is held for another %v, and trusted for %v more", after, ttl, left,
				lease.Until().Sub(until))
		}
		e.release(lease)
	}
}

// The same is true if the holder crashes at that moment.
func downgradeMinHoldCrash(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(a.RWMutex(name, holdfast.WithMinHold(time.Minute), holdfast.WithTTL(5*time.Second)).Lock)
	e.downgrade(lease)
	if left := e.heldError(b.RWMutex(name).TryLock).Remaining; left < 30*time.Second {
		e.Errorf("held for %v of a minute", left)
	}
}

// afterSlice waits until readers of a process no longer join the hold that the process has.
func afterSlice() { <-time.After(10 * time.Millisecond) }

package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func rwmutex() []test {
	return []test{
		{"one writes, or many read", rwOneWritesOrManyRead, 0},
		{"a writer is not starved", rwWriterNotStarved, queue},
		{"reentry", rwReentry, 0},
		{"write in read is refused", rwWriteInRead, 0},
		{"what remains of a writer that reads on", rwReadsOn, 0},
		{"an owner that reads may not write", rwOwnerUpgrades, leaves},
	}
}

// Nobody else is in beside a writer, whether clients or goroutines contend, some in strict order,
// some downgrading.
func rwOneWritesOrManyRead(e *env) {
	var readers, writers atomic.Int64
	checkNoWriter := func() {
		if n := writers.Load(); n != 0 {
			e.Errorf("%d write while one reads", n)
		}
	}
	e.contend(3, 4, 12, func(c *client, i, round int) {
		m := c.RWMutex(name)
		if i == 0 {
			m = c.RWMutex(name, holdfast.WithStrictOrder())
		}
		// In each round one goroutine of a client writes and three read. In every third round the
		// writer reads on.
		writes, readsOn := (round+i)%4 == 0, round%3 == 0
		lock := m.RLock
		if writes {
			lock = m.Lock
		}
		lease, err := lock(e.ctx())
		if err != nil {
			e.Errorf("writes %v: %v", writes, err)
			return
		}
		defer e.release(lease)
		if writes {
			if n, r := writers.Add(1), readers.Load(); n != 1 || r != 0 {
				e.Errorf("%d write, %d read", n, r)
			}
			writers.Add(-1)
			if !readsOn {
				return
			}
			if err := lease.Downgrade(e.ctx()); err != nil {
				e.Errorf("Downgrade: %v", err)
			}
		}
		readers.Add(1)
		checkNoWriter()
		<-time.After(time.Duration(lease.Token()%3) * time.Millisecond)
		checkNoWriter()
		readers.Add(-1)
	})
}

// Trap 23: a writer gets in under a stream of readers in which one always reads, in the writer's
// process and elsewhere.
func rwWriterNotStarved(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	ctx, stop := context.WithCancel(e.ctx())
	var all sync.WaitGroup
	for i, reader := range []*client{a, b, a, b, a, b} {
		all.Go(func() {
			for ctx.Err() == nil {
				lease, err := reader.RWMutex(name).RLock(e.ctx())
				if err != nil {
					e.Errorf("RLock: %v", err)
					return
				}
				<-time.After(time.Duration(3+i) * time.Millisecond)
				e.release(lease)
			}
		})
	}
	for range 5 {
		for _, writer := range []*client{a, c} {
			lease, err := writer.RWMutex(name).Lock(e.ctx())
			if err != nil {
				e.Errorf("Lock: %v", err)
				continue
			}
			e.release(lease)
		}
	}
	stop()
	all.Wait()
}

func rwReentry(e *env) {
	a, b := e.client(), e.client()
	m := a.RWMutex(name)
	for _, test := range []struct {
		name         string
		outer, inner lockFunc
		othersRead   bool
	}{
		{"read in read", m.RLock, m.RLock, true},
		{"read in read, trying", m.RLock, m.TryRLock, true},
		{"write in write", m.Lock, m.Lock, false},
		{"write in write, trying", m.Lock, m.TryLock, false},
		{"read in write", m.Lock, m.RLock, false},
		{"read in write, trying", m.Lock, m.TryRLock, false},
	} {
		outer := e.take(test.outer)
		<-time.After(10 * time.Millisecond) // longer than readers of a process join without asking
		inner, err := test.inner(leased.Context(outer))
		if err != nil {
			e.Fatalf("%s: %v", test.name, err)
		}
		if inner.Token() != outer.Token() || inner.Owner() != outer.Owner() {
			e.Errorf("%s: token %d, then %d", test.name, outer.Token(), inner.Token())
		}
		third := e.takeUnder(inner, m.RLock)
		e.release(third)
		e.release(inner)
		e.checkIs(e.lockError(b.RWMutex(name).TryLock), holdfast.ErrHeld)
		if lease, err := e.lockUntilAnswered(b.RWMutex(name).TryRLock); (err == nil) != test.othersRead {
			e.Errorf("%s: another reads: %v", test.name, err)
		} else if err == nil {
			e.release(lease)
		}
		e.release(outer)
		e.release(e.take(b.RWMutex(name).TryLock))
	}
}

// Trap 24: two readers that upgraded would wait for each other for ever.
func rwWriteInRead(e *env) {
	a, b := e.client(), e.client()
	m := a.RWMutex(name)
	outer := e.take(m.RLock)
	for _, options := range [][]holdfast.Option{nil, {holdfast.WithTTL(time.Second)}, {holdfast.WithStrictOrder()},
		{holdfast.WithPolling(time.Millisecond, 0)}} {
		handle := a.RWMutex(name, options...)
		inner := e.takeUnder(outer, handle.RLock)
		e.checkUpgradeRefused(leased.Context(outer), handle)
		e.checkUpgradeRefused(leased.Context(inner), handle)
		e.checkUpgradeRefused(context.WithValue(leased.Context(outer), contextKey{}, 1), handle)
		e.release(inner)
	}
	if err := outer.Err(); err != nil {
		e.Errorf("the reader: %v", err)
	}
	e.release(e.take(b.RWMutex(name).TryRLock))
	ctx := context.WithoutCancel(leased.Context(outer))
	e.release(outer)
	e.release(e.take(inContext(ctx, m.TryLock))) // nothing reads any more
}

// checkUpgradeRefused fails unless nothing may write under the context of a reader.
func (e *env) checkUpgradeRefused(reads context.Context, m *holdfast.RWMutex) {
	e.Helper()
	e.checkRefused(errorOf(m.Lock(reads)), "ctx")
	e.checkRefused(errorOf(m.TryLock(reads)), "ctx")
	e.checkRefused(m.Do(reads, func(context.Context) error { e.Error("it ran"); return nil }), "ctx")
}

// A holder that writes, reads, and then releases the lease that writes, goes on to read, and others
// may read.
func rwReadsOn(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	m := a.RWMutex(name)
	writer := e.take(m.Lock)
	reader := e.takeUnder(writer, m.RLock)
	w := e.startWaiting(e.ctx(), b, b.RWMutex(name).RLock)
	e.release(writer)
	other := w.await()
	if reader.Token() != writer.Token() || reader.Err() != nil {
		e.Errorf("token %d, then %d, %v", writer.Token(), reader.Token(), reader.Err())
	}
	e.checkHolds(reader)
	e.checkRefused(errorOf(m.TryLock(leased.Context(reader))), "ctx")
	e.release(other)
	e.checkIs(e.lockError(c.RWMutex(name).TryLock), holdfast.ErrHeld)
	e.release(reader)
	e.release(e.take(c.RWMutex(name).TryLock))
}

func rwOwnerUpgrades(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	owner := holdfast.WithOwner("o")
	reader := e.take(a.RWMutex(name, owner).TryRLock)
	for range 2 { // nor when it asks again
		e.checkRefused(e.lockError(b.RWMutex(name, owner).TryLock), "owner")
		e.checkRefused(errorOf(b.RWMutex(name, owner).Lock(e.ctx())), "owner")
	}
	e.release(e.take(other.RWMutex(name).TryRLock)) // no waiter was put in the queue
	e.release(e.take(b.RWMutex(name, owner).TryRLock))
	e.release(reader)
	// Trap 24 too: the writer would wait for its own hold to end, behind the min hold of another.
	writer := e.take(a.RWMutex(name, owner, holdfast.WithMinHold(time.Minute)).TryLock)
	reader = e.take(b.RWMutex(name, owner).TryRLock)
	e.release(writer)
	e.checkRefused(e.lockError(a.RWMutex(name, owner).TryLock), "owner")
	e.checkRefused(errorOf(a.RWMutex(name, owner).Lock(e.ctx())), "owner")
	e.release(reader)
}

func downgrade() []test {
	return []test{
		{"keeps the lease", downgradeKeeps, 0},
		{"lets them by who wait in the same process", downgradeJoins, queue},
		{"prolongs no lease that ends by itself", downgradeEnds, 0},
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

// afterSlice waits until readers of a process no longer join the hold that the process has.
func afterSlice() { <-time.After(10 * time.Millisecond) }

package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func deadlocks() []test {
	return []test{
		{"a cycle of two ends one call", deadlockOfTwo, queue},
		{"what others are told of a caller that waits under leases", deadlockEvidence, queue},
		{"where the check is refused", deadlockRefused, 0},
	}
}

// checkedMutex is a mutex with the check. Its TTL is more than a slow machine stands still, and the
// first look comes after it.
func checkedMutex(c *client, name string) *holdfast.Mutex {
	return c.Mutex(name, holdfast.WithDeadlockCheck(), holdfast.WithTTL(5*time.Second))
}

// long returns a context that bounds the waits of a cycle.
func (e *env) long() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	e.Cleanup(cancel)
	return ctx
}

func (e *env) startWaitingUnder(lease *holdfast.Lease, c *client, lock lockFunc) *waiter {
	e.Helper()
	ctx, cancel := lease.Bind(e.long())
	e.Cleanup(cancel)
	w := e.startWaiting(ctx, c, lock)
	<-time.After(time.Millisecond) // on a fake clock, the next one joins later
	return w
}

// awaitVictim waits for the end of a call that a cycle of so many ends.
func (e *env) awaitVictim(w *waiter, members int) lockinfo.Deadlock {
	e.Helper()
	if !eventually.Holds(4*patience, w.hasReturned) {
		e.Fatal("it still waits")
	}
	var waited *holdfast.WaitError
	if !errors.As(w.err, &waited) || waited.Reason != holdfast.WaitDeadlock || waited.By != "" || waited.Err != nil {
		e.Fatalf("it ended with %v, %v", w.lease, w.err)
	}
	e.checkIsNone(w.err, holdfast.ErrWaitOver, context.Canceled, context.DeadlineExceeded, holdfast.ErrHeld,
		holdfast.ErrUnavailable)
	if n := len(waited.Deadlock.Members); n != members || waited.Name != waited.Deadlock.Members[0].Waits ||
		waited.Waited <= 0 {
		e.Errorf("a cycle of %d, want %d: %v", n, members, w.err)
	}
	return waited.Deadlock
}

func deadlockOfTwo(e *env) {
	a, b := e.client(label("first")), e.client(label("second"))
	ofA, ofB := e.lock(checkedMutex(a, "a")), e.lock(checkedMutex(b, "b"))
	first := e.startWaitingUnder(ofA, a, checkedMutex(a, "b").Lock)
	second := e.startWaitingUnder(ofB, b, checkedMutex(b, "a").Lock)
	want := []lockinfo.Member{
		{Label: "second", Holds: "b", Token: ofB.Token(), Waits: "a"},
		{Label: "first", Holds: "a", Token: ofA.Token(), Waits: "b"},
	}
	for i, m := range e.awaitVictim(second, 2).Members {
		m.Host, m.PID = "", 0
		if m != want[i] {
			e.Errorf("member %d is %+v, want %+v", i, m, want[i])
		}
	}
	if first.hasReturned() {
		e.Errorf("the other call ended too: %v", first.err)
	}
	e.release(ofB)
	e.release(first.await())
	e.release(ofA)
}

func deadlockEvidence(e *env) {
	a, b := e.client(), e.client()
	holder := e.lock(b.Mutex(name))
	group := e.take(a.All([]string{"g:1+", "g 2"}).Lock)
	inner := e.takeUnder(group, a.Mutex("inner").Lock)
	plain := e.startWaitingUnder(inner, a, a.Mutex(name).Lock)
	w := e.startWaitingUnder(inner, a, checkedMutex(a, name).Lock)
	child := e.client() // of the process that has the leases, which tells it their tokens
	tokens := map[string]int64{"inner": inner.Token(), "g:1+": inner.Token() + 1, "free": 1}
	ofChild := e.startWaiting(e.ctx(), child, child.Mutex(name, holdfast.WithUnder(tokens)).Lock)
	info := e.inspect(b, name)
	if len(info.Queue) != 3 || len(info.Queue[0].Under) != 0 ||
		fmt.Sprintf("%q", info.Queue[1].Under) != `["inner" "g:1+" "g 2"]` ||
		fmt.Sprintf("%q", info.Queue[2].Under) != `["inner"]` {
		e.Errorf("the queue is told as %+v", info.Queue)
	}
	chain, err := b.Why(e.ctx(), "inner")
	e.must(err)
	if l := chain.Links; len(l) != 2 || len(l[0].Waits) != 1 || len(l[1].Waits) != 0 {
		e.Fatalf("got %+v, want a link that waits for one that does not wait", l)
	}
	first, last := chain.Links[0], chain.Links[1]
	checkEqual(e, "first name", first.Name, "inner")
	checkEqual(e, "token of the first", first.Hold.Token, inner.Token())
	checkEqual(e, "name that the first waits for", first.Waits[0].Name, name)
	checkEqual(e, "the first waits perhaps", first.Waits[0].Perhaps, false)
	checkEqual(e, "last name", last.Name, name)
	checkEqual(e, "token of the last", last.Hold.Token, holder.Token())
	e.release(holder)
	e.release(plain.await())
	lease := w.await()
	ticket, err := lease.Detach() // its payload goes along
	e.must(err)
	again := e.attach(b, ticket)
	e.release(again)
	e.release(ofChild.await())
	e.checkFree(b.Mutex(name))
	e.release(inner)
	e.release(group)
}

func deadlockRefused(e *env) {
	c, check := e.client(), holdfast.WithDeadlockCheck()
	if !e.backend.NoQueue {
		poll := holdfast.WithPolling(time.Second, 1)
		e.checkRefused(errorOf(c.Mutex(name, check, poll).Lock(e.ctx())), "WithDeadlockCheck")
		e.release(e.lock(c.Mutex(name, check)))
		return
	}
	for _, lock := range []lockFunc{c.Mutex(name, check).Lock, c.RWMutex(name, check).RLock,
		c.Election(name, check).Campaign, c.All([]string{name}, check).Lock} {
		e.checkRefused(errorOf(lock(e.ctx())), "WithDeadlockCheck")
	}
	_, err := c.Deadlocks(e.ctx())
	e.checkRefused(err, "Client")
}

package storetest

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
)

func evicting() []test {
	return []test{
		{"ends the wait, and the others keep their places", evictEnds, queue},
		{"takes a kept place", evictPlace, queue | leaves},
	}
}

// evict takes the first waiter with a label out of the queue, and returns its ID.
func (e *env) evict(op *client, label string) string {
	e.Helper()
	for _, waiter := range e.inspect(op, name).Queue {
		if waiter.Label != label {
			continue
		}
		e.must(e.askUntilAnswered(func() error { return op.Evict(e.ctx(), name, waiter.ID) }))
		return waiter.ID
	}
	e.Fatalf("no waiter has the label %q", label)
	return ""
}

// awaitEviction waits until a wait ends because the client with the label OP evicted the waiter.
func (w *waiter) awaitEviction() {
	w.e.Helper()
	lease, err := w.awaitResult()
	var ended *holdfast.WaitError
	if lease != nil || !errors.As(err, &ended) {
		w.e.Fatalf("the wait ended with %v, %v, want a WaitError", lease, err)
	}
	checkEqual(w.e, "name", ended.Name, name)
	checkEqual(w.e, "reason", ended.Reason, holdfast.WaitEvicted)
	checkEqual(w.e, "evicted by", ended.By, "OP")
	checkEqual(w.e, "cause", ended.Err, nil)
	checkEqual(w.e, "members of a deadlock", len(ended.Deadlock.Members), 0)
	w.e.checkIsNone(err, holdfast.ErrHeld, holdfast.ErrUnavailable, holdfast.ErrWaitOver, context.Canceled,
		context.DeadlineExceeded)
}

func evictEnds(e *env) {
	a, op := e.client(), e.client(label("OP"))
	b, c, d := e.client(label("B")), e.client(label("C")), e.client(label("D"))
	lease := e.lock(a.Mutex(name))
	one := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
	two := e.startWaiting(e.ctx(), c, c.Mutex(name).Lock)
	three := e.startWaiting(e.ctx(), d, d.Mutex(name).Lock)
	out := e.evict(op, "C")
	two.awaitEviction()
	info := e.inspect(op, name)
	checkEqual(e, "waiters", info.Waiters, 2)
	e.checkQueue(info.Queue, "B", "D")
	e.checkIs(op.Evict(e.ctx(), name, out), holdfast.ErrNotWaiting)
	e.release(lease)
	first := one.await()
	again := e.startWaiting(e.ctx(), c, c.Mutex(name).Lock) // it may wait anew, at the end
	e.release(first)
	e.release(three.await())
	e.release(again.await())
}

func evictPlace(e *env) {
	a, b, op := e.client(), e.client(label("B")), e.client(label("OP"))
	lease := e.lock(a.Mutex(name))
	ticket := e.ticket(b.Mutex(name))
	e.evict(op, "B")
	e.goTake(e.ctx(), attachFunc(b, ticket)).awaitEviction()
	ticket = e.ticket(b.Mutex(name))
	out := e.startWaiting(e.ctx(), b, attachFunc(b, ticket))
	e.evict(op, "B")
	out.awaitEviction()
	e.goTake(e.ctx(), attachFunc(a, ticket)).awaitEviction() // the next process with the ticket is told, too
	e.release(lease)
}

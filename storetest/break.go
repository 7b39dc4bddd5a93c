package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func breaking() []test {
	return []test{
		{"lets the next in after the release", breakReleased, queue},
		{"of a holder that does not release ends with its TTL", breakKept, leaves},
		{"tells a holder that listens by message", breakTells, 0},
		{"needs the token of the hold", breakWrongToken, 0},
		{"waits for every entry", breakReentered, 0},
		{"of one name ends a group", breakGroup, 0},
		{"behind a min hold", breakMinHold, leaves},
		{"beside another hold of its owner", breakOwner, 0},
		{"a detached hold cannot be attached", breakDetached, leaves},
		{"by force lets the next in at once", breakForce, 0},
		{"by force ends what a break and a min hold left", breakForceRemainder, 0},
	}
}

func (e *env) breakError(c *client, name string, token int64) error {
	return e.askUntilAnswered(func() error { return c.Break(e.ctx(), name, token) })
}

func (e *env) breakHold(c *client, name string, token int64) {
	e.Helper()
	e.must(e.breakError(c, name, token))
}

// forceBreak asks to end the hold of a name at once.
func (e *env) forceBreak(c *client, token int64) error {
	return e.askUntilAnswered(func() error { return c.ForceBreak(e.ctx(), name, token) })
}

// checkBroken fails unless err says that the client with the label OP broke a hold.
func (e *env) checkBroken(err error) {
	e.Helper()
	var lost *holdfast.LostError
	if e.checkLost(err, holdfast.LossBroken); errors.As(err, &lost) && lost.By != "OP" {
		e.Errorf("broken by %q", lost.By)
	}
}

// releaseBroken releases a lease whose hold was broken. The remainder is given back in the
// background.
func (e *env) releaseBroken(lease *holdfast.Lease) {
	e.Helper()
	e.checkBroken(lease.Release())
}

func breakReleased(e *env) {
	a, b, op := e.client(label("A")), e.client(), e.client(label("OP"))
	lease := e.lock(a.Mutex(name, holdfast.WithTTL(6*time.Second)))
	ctx := leased.Context(lease)
	next := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
	e.breakHold(op, name, lease.Token())
	e.checkBroken(e.awaitEnd(ctx)) // its next renewal says so
	e.checkBroken(lease.Err())
	e.checkBroken(e.check(lease))
	if next.hasReturned() {
		e.Error("the next got in before the release")
	}
	e.breakHold(op, name, lease.Token()) // it is broken already
	e.releaseBroken(lease)
	second := next.await()
	e.checkIs(op.Break(e.ctx(), name, lease.Token()), holdfast.ErrNotHeld)
	if err := e.check(second); err != nil || second.Token() <= lease.Token() {
		e.Errorf("token %d after %d, %v", second.Token(), lease.Token(), err)
	}
	e.release(second)
}

// checkKept checks that a remainder keeps others out of a mutex, and that it is named.
func (e *env) checkKept(m *holdfast.Mutex, why lockinfo.State, by string) {
	e.Helper()
	var held *holdfast.HeldError
	if err := e.lockError(m.TryLock); !errors.As(err, &held) || held.Remainder != why || held.BrokenBy != by {
		e.Errorf("refused with %v, want that it is %s by %q", err, why, by)
	}
}

func breakKept(e *env) {
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	lease := e.lock(a.Mutex(name, holdfast.WithTTL(3*time.Second), holdfast.WithoutRenewal()))
	trusted := lease.Until()
	e.breakHold(op, name, lease.Token())
	e.checkKept(b.Mutex(name), lockinfo.StateBroken, "OP")
	e.checkBroken(e.askUntilAnswered(func() error { return lease.Extend(e.ctx()) }))
	second := e.lock(b.Mutex(name))
	if time.Now().Before(trusted) || lease.Err() == nil {
		e.Errorf("let in %v before the end of trust, %v", time.Until(trusted), lease.Err())
	}
	e.release(second)
	_ = lease.Release()
}

// A fixed lease has no renewal that could learn of the break, so the message makes its process ask.
// The process listens because it waits for the same name. With sharded channels it hears of no
// other name.
func breakTells(e *env) {
	a, op := e.client(), e.client(label("OP"))
	lease := e.lock(a.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute)))
	ctx := leased.Context(lease)
	w := e.startWaiting(e.ctx(), a, a.Mutex(name).Lock)
	e.breakHold(op, name, lease.Token())
	e.checkBroken(e.awaitEnd(ctx))
	e.releaseBroken(lease)
	e.release(w.await())
}

func breakWrongToken(e *env) {
	a, op := e.client(), e.client(label("OP"))
	former := e.lock(a.Mutex(name))
	e.release(former)
	lease := e.lock(a.Mutex(name))
	for _, token := range []int64{1, former.Token(), lease.Token() - 1, 1<<53 - 1} {
		e.checkIs(e.breakError(op, name, token), holdfast.ErrNotHeld)
	}
	e.checkIs(e.breakError(op, "other", lease.Token()), holdfast.ErrNotHeld)
	e.checkHolds(lease)
	e.release(lease)
	e.checkIs(e.breakError(op, name, lease.Token()), holdfast.ErrNotHeld)
}

func breakReentered(e *env) {
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	outer := e.lock(a.Mutex(name))
	inner := e.takeUnder(outer, a.Mutex(name).Lock)
	e.breakHold(op, name, inner.Token())
	e.checkBroken(e.check(outer))
	e.releaseBroken(outer)
	e.releaseBroken(outer)
	e.busyError(b.Mutex(name))
	e.releaseBroken(inner)
	e.release(e.lock(b.Mutex(name)))
}

func breakGroup(e *env) {
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	lease := e.take(a.All([]string{"a", "b"}, holdfast.WithTTL(6*time.Second)).Lock)
	ctx := leased.Context(lease)
	e.breakHold(op, "b", lease.Tokens()["b"])
	e.checkBroken(e.awaitEnd(ctx))
	e.busyError(b.Mutex("a"))
	e.busyError(b.Mutex("b"))
	var lost *holdfast.LostError
	if err := lease.Release(); !errors.As(err, &lost) || lost.Name != "b" || lost.Reason != holdfast.LossBroken {
		e.Errorf("got %v", err)
	}
	e.release(e.lock(b.Mutex("a")))
	e.release(e.lock(b.Mutex("b")))
}

func breakMinHold(e *env) {
	const least = 2 * time.Second
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	began := time.Now()
	lease := e.lock(a.Mutex(name, holdfast.WithMinHold(least)))
	e.breakHold(op, name, lease.Token())
	e.releaseBroken(lease)
	e.release(e.lock(b.Mutex(name, holdfast.WithMinHold(least))))
	if took := time.Since(began); took < least {
		e.Errorf("the next got in after %v", took)
	}
	e.checkKept(a.Mutex(name), lockinfo.StateMinHold, "")
	e.checkIs(e.breakError(op, name, lease.Token()), holdfast.ErrNotHeld)
}

func breakOwner(e *env) {
	a, b, other, op := e.client(), e.client(), e.client(), e.client(label("OP"))
	one, two := e.lock(a.Mutex(name, holdfast.WithOwner("o"))), e.lock(b.Mutex(name, holdfast.WithOwner("o")))
	e.breakHold(op, name, one.Token())
	for _, hold := range e.inspect(op, name).Holds {
		want := lockinfo.Hold{State: lockinfo.StateHeld}
		if hold.Token == one.Token() {
			want = lockinfo.Hold{State: lockinfo.StateBroken, By: "OP"}
		}
		if hold.State != want.State || hold.By != want.By {
			e.Errorf("got %+v, want %s by %q", hold, want.State, want.By)
		}
	}
	e.checkState(op, name, lockinfo.StateHeld)
	e.checkBroken(e.check(one))
	e.checkHolds(two)
	e.release(two)
	e.checkState(op, name, lockinfo.StateBroken)
	for _, options := range [][]holdfast.Option{nil, {holdfast.WithOwner("o")}} { // what is left lets nobody enter
		if held := e.busyError(other.Mutex(name, options...)); held.Holder != "" || held.Holders != 1 {
			e.Errorf("got %+v, want a remainder", held)
		}
	}
	e.releaseBroken(one)
	e.release(e.lock(other.Mutex(name)))
}

func breakDetached(e *env) {
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	lease := e.lock(a.Mutex(name))
	ticket := e.detach(lease)
	e.breakHold(op, name, lease.Token())
	var refused *holdfast.TicketError
	err := e.askUntilAnswered(func() error { _, err := b.Attach(e.ctx(), ticket); return err })
	if e.checkTicketError(err, holdfast.TicketBroken); errors.As(err, &refused) && refused.By != "OP" {
		e.Errorf("broken by %q", refused.By)
	}
	// The caller of Discard says that no code works under the ticket any more.
	if err := e.askUntilAnswered(func() error { return b.DiscardTicket(e.ctx(), ticket) }); err != nil {
		e.Errorf("Discard: %v", err)
	}
	e.checkFree(b.Mutex(name))
	e.checkTicketError(e.askUntilAnswered(func() error { return b.DiscardTicket(e.ctx(), ticket) }),
		holdfast.TicketGone)
}

func breakForce(e *env) {
	if e.backend.isQuorum() {
		e.Skip("no force at a quorum")
	}
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	lease := e.lock(a.Mutex(name))
	e.must(e.forceBreak(op, lease.Token()))
	e.checkFree(b.Mutex(name))
	e.checkLost(e.check(lease), holdfast.LossGone)
	_ = lease.Release()
	e.checkIs(e.forceBreak(op, lease.Token()), holdfast.ErrNotHeld)
}

func breakForceRemainder(e *env) {
	if e.backend.isQuorum() {
		e.Skip("no force at a quorum")
	}
	a, b, op := e.client(), e.client(), e.client(label("OP"))
	lease := e.lock(a.Mutex(name))
	e.breakHold(op, name, lease.Token())
	e.busyError(b.Mutex(name))
	e.must(e.forceBreak(op, lease.Token()))
	_ = lease.Release()
	kept := e.tryLock(b.Mutex(name, holdfast.WithMinHold(10*time.Second)))
	e.release(kept)
	e.busyError(a.Mutex(name))
	e.must(e.forceBreak(op, kept.Token()))
	e.checkFree(a.Mutex(name))
}

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

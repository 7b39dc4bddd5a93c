package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// slack is how much the times of a server may differ from ours: it counts whole milliseconds, by a
// clock of its own.
const slack = 2 * time.Millisecond

func minHold() []test {
	return []test{
		{"keeps others out after the release", minHoldKeeps, 0},
		{"keeps others out after a crash", minHoldCrash, 0},
		{"that is over delays nobody", minHoldOver, 0},
		{"is not cut by a renewal", minHoldRenewed, leaves},
		{"of one owner is not cut by another of its leases", minHoldOfOwner, leaves},
		{"lets nobody in again early", minHoldSelf, leaves},
	}
}

// Release returns at once. The next holder gets in when the time is over. Until then, what is left
// keeps out whom the hold kept out.
func minHoldKeeps(e *env) {
	a, b := e.client(), e.client()
	const least = 400 * time.Millisecond
	for i, use := range e.uses() {
		name := fmt.Sprint("name ", i)
		before := time.Now()
		lease := e.take(use.try(a, name, holdfast.WithMinHold(least)))
		w := e.startWaiting(e.ctx(), b, use.rival(b, name))
		e.release(lease)
		e.checkIs(lease.Err(), holdfast.ErrNotHeld)
		next := w.await()
		if took := w.at.Sub(before); took < least-slack {
			e.Errorf("%s: another was in after %v of %v", use.kind, took, least)
		}
		e.release(next)
		if use.other != nil {
			e.release(e.take(use.try(a, name, holdfast.WithMinHold(least))))
			e.release(e.take(use.other(b, name)))
		}
	}
}

func minHoldCrash(e *env) {
	a, b := e.client(), e.client()
	const least = 500 * time.Millisecond
	before := time.Now()
	e.lock(a.Mutex(name, holdfast.WithMinHold(least), holdfast.WithTTL(100*time.Millisecond),
		holdfast.WithoutRenewal()))
	next := e.lock(b.Mutex(name))
	if took := time.Since(before); took < least-slack {
		e.Errorf("another was in after %v of %v", took, least)
	}
	e.release(next)
}

func minHoldOver(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name, holdfast.WithMinHold(20*time.Millisecond)))
	w := e.startWaitingFor(e.ctx(), b, b.Mutex(name))
	<-time.After(30 * time.Millisecond)
	e.release(lease)
	e.release(w.await())
	e.checkFree(a.Mutex(name))
}

// A renewal for a short TTL must not bring the end of a longer min hold forward.
func minHoldRenewed(e *env) {
	a, b := e.client(), e.client()
	e.lock(a.Mutex(name, holdfast.WithMinHold(time.Minute), holdfast.WithTTL(3*time.Second)))
	a.await(holdfast.EventRenewed, 1)
	if held := e.busyError(b.Mutex(name)); held.Remaining < 30*time.Second {
		e.Errorf("%v remain of a minute", held.Remaining)
	}
}

func minHoldOfOwner(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	long := e.lock(a.Mutex(name, holdfast.WithOwner("o"), holdfast.WithMinHold(time.Minute)))
	short := e.lock(b.Mutex(name, holdfast.WithOwner("o"), holdfast.WithMinHold(200*time.Millisecond)))
	e.release(long)
	e.release(short)
	if !eventually(func() bool { return e.busyError(other.Mutex(name)).Remaining > 30*time.Second }) {
		e.Error("the longer of the two is not what remains")
	}
}

// The remainder of a released hold has no owner. Its former owner would otherwise take it for a
// hold of its own.
func minHoldSelf(e *env) {
	a := e.client()
	owner := holdfast.WithOwner("o")
	e.release(e.lock(a.Mutex(name, owner, holdfast.WithMinHold(time.Minute))))
	if held := e.busyError(a.Mutex(name, owner)); held.Remaining < 30*time.Second || held.Remaining > time.Minute {
		e.Errorf("%v remain of a minute", held.Remaining)
	}
}

func maxHold() []test {
	return []test{
		{"ends a lease that is renewed", maxHoldEnds, 0},
		{"below the TTL lowers it", maxHoldLowers, 0},
		{"is not passed by the server's expiry", maxHoldAtServer, 0},
	}
}

func maxHoldEnds(e *env) {
	a, b := e.client(), e.client()
	const most = 2200 * time.Millisecond
	before, uses := time.Now(), e.uses()
	leases, waiters := make([]*holdfast.Lease, len(uses)), make([]*waiter, len(uses))
	for i, use := range uses {
		leases[i] = e.take(use.try(a, fmt.Sprint("name ", i), holdfast.WithMaxHold(most), holdfast.WithTTL(roomy)))
	}
	after := time.Now()
	for i, use := range uses {
		waiters[i] = e.goTake(e.ctx(), use.rival(b, fmt.Sprint("name ", i)))
	}
	for i, lease := range leases {
		e.awaitLoss(lease, holdfast.LossMaxHold)
		if took := time.Since(before); took < most-100*time.Millisecond {
			e.Errorf("%s: ended after %v of %v", uses[i].kind, took, most)
		}
		if until := lease.Until(); until.After(after.Add(most)) {
			e.Errorf("%s: trusted until %v after the grant, although %v is the most", uses[i].kind, until.Sub(after),
				most)
		}
		e.checkLost(lease.Err(), holdfast.LossMaxHold)
		next := waiters[i].await() // although the holder does not release
		e.checkLost(lease.Release(), holdfast.LossMaxHold)
		e.release(next)
	}
}

func maxHoldLowers(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name, holdfast.WithMaxHold(5*time.Second), holdfast.WithTTL(time.Minute)))
	if held := e.busyError(b.Mutex(name)); held.Remaining > 5*time.Second {
		e.Errorf("%v remain of 5s", held.Remaining)
	}
	if until := time.Until(lease.Until()); until > 5*time.Second {
		e.Errorf("trusted for %v", until)
	}
	e.release(lease)
}

func maxHoldAtServer(e *env) {
	a, b := e.client(), e.client()
	const most = 2200 * time.Millisecond
	lease := e.lock(a.Mutex(name, holdfast.WithMaxHold(most), holdfast.WithTTL(roomy)))
	after := time.Now()
	a.await(holdfast.EventRenewed, 1) // for a full TTL it would have passed it
	past := time.Since(after)
	var held *holdfast.HeldError
	if next, err := e.lockUntilAnswered(b.Mutex(name).TryLock); err == nil {
		e.release(next)
	} else if !errors.As(err, &held) || held.Remaining > most-past+slack {
		e.Errorf("%v after the grant, more than the rest of %v remains: %v", past, most, err)
	}
	_ = lease.Release()
}

func renewal() []test {
	return []test{
		{"keeps leases of every kind beyond their TTL", renewedKinds, 0},
		{"of many at once", renewedTogether, 0},
		{"ends with the release", notRenewedAfterRelease, 0},
		{"none", notRenewed, 0},
	}
}

func renewedKinds(e *env) {
	const ttl = 3 * time.Second
	a, b := e.client(), e.client()
	var leases []*holdfast.Lease
	tokens := map[string]int64{}
	for i, use := range e.uses() {
		leases = append(leases, e.take(use.try(a, fmt.Sprint("name ", i), holdfast.WithTTL(ttl))))
	}
	downgraded := e.take(a.RWMutex("downgraded", holdfast.WithTTL(ttl)).Lock)
	e.downgrade(downgraded)
	leases = append(leases, downgraded)
	for _, lease := range leases {
		tokens[lease.Name()] = lease.Token()
	}
	first := leases[0].Until()
	for _, event := range a.await(holdfast.EventRenewed, 3*len(leases)) {
		if event.Headroom <= 0 || event.Headroom > ttl || event.Token != tokens[event.Name] {
			e.Errorf("got %+v", event)
		}
	}
	e.checkHolds(leases...)
	if !leases[0].Until().After(first) || e.busyError(b.Mutex(leases[0].Name())).Remaining > ttl {
		e.Errorf("trusted until %v after the first end", leases[0].Until().Sub(first))
	}
	e.release(leases...)
}

// Trap 9: renewals one after the other would take longer than the TTL.
func renewedTogether(e *env) {
	c := e.client(func(c *holdfast.Config) { c.TTL = 3 * time.Second })
	var leases []*holdfast.Lease
	for i := range 150 {
		leases = append(leases, e.lock(c.Mutex(name+string(rune('A'+i)))))
	}
	c.await(holdfast.EventRenewed, 2*len(leases))
	for _, lease := range leases {
		if err := lease.Err(); err != nil {
			e.Errorf("%s: %v", lease.Name(), err)
		}
		e.release(lease)
	}
}

// Trap 8: a renewal that outlives the release would hold for ever.
func notRenewedAfterRelease(e *env) {
	a, b := e.client(), e.client()
	m := a.Mutex(name, holdfast.WithTTL(100*time.Millisecond))
	for range 10 {
		lease := e.take(m.Lock)
		<-time.After(30 * time.Millisecond) // about when a renewal is sent
		if err := lease.Release(); err == nil {
			e.checkFree(b.Mutex(name))
		} // otherwise the machine took 100 ms
	}
	if !eventually(func() bool {
		lease, err := e.lockUntilAnswered(b.Mutex(name).TryLock)
		return err == nil && lease.Release() == nil
	}) {
		e.Error("held for ever")
	}
}

func notRenewed(e *env) {
	a, b := e.client(), e.client()
	lease := e.takeFixed(a, name, ttl)
	first := lease.Until()
	e.awaitLoss(lease, holdfast.LossExpired)
	if until := lease.Until(); until.After(first) || len(a.of(holdfast.EventRenewed)) > 0 {
		e.Errorf("it was renewed for %v", until.Sub(first))
	}
	e.checkLost(lease.Err(), holdfast.LossExpired)
	if lost := a.await(holdfast.EventLost, 1)[0]; lost.Name != name || lost.Token != lease.Token() {
		e.Errorf("got %+v", lost)
	}
	e.release(e.lock(b.Mutex(name)))
}

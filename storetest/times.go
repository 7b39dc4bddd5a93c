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
		{"is not cut by a renewal", minHoldRenewed, leaves},
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

// A renewal for a short TTL must not bring the end of a longer min hold forward.
func minHoldRenewed(e *env) {
	a, b := e.client(), e.client()
	e.lock(a.Mutex(name, holdfast.WithMinHold(time.Minute), holdfast.WithTTL(3*time.Second)))
	a.await(holdfast.EventRenewed, 1)
	if held := e.busyError(b.Mutex(name)); held.Remaining < 30*time.Second {
		e.Errorf("%v remain of a minute", held.Remaining)
	}
}

func maxHold() []test {
	return []test{
		{"ends a lease that is renewed", maxHoldEnds, 0},
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

func extend() []test {
	return []test{
		{"lets it last for another TTL", extendLasts, 0},
		{"up to the max hold", extendMaxHold, 0},
	}
}

// extendTTL is long enough for a busy machine, and extends by what can be told from no extension.
const extendTTL = 20 * time.Second

var unrenewed = []holdfast.Option{holdfast.WithoutRenewal(), holdfast.WithTTL(extendTTL)}

// extend extends a lease, which must work. It returns when that began.
func (e *env) extend(lease *holdfast.Lease) (began time.Time) {
	e.Helper()
	e.must(e.askUntilAnswered(func() error { began = time.Now(); return lease.Extend(e.ctx()) }))
	return began
}

// checkExtends extends a lease, and fails unless trust then counts from the call of Extend on.
func (e *env) checkExtends(lease *holdfast.Lease) {
	e.Helper()
	before, first := lease.Until(), time.Now()
	<-time.After(20 * time.Millisecond)
	e.extend(lease)
	after := time.Now()
	most := extendTTL - extendTTL/100 - 5*time.Millisecond
	if until := lease.Until(); !until.After(before) || until.Before(first.Add(most)) || until.After(after.Add(most)) {
		e.Errorf("trusted for another %v after %v, before for %v", until.Sub(after), after.Sub(first),
			before.Sub(after))
	}
	e.checkHolds(lease)
}

func extendLasts(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name, unrenewed...))
	for range 3 {
		e.checkExtends(lease)
	}
	began := e.extend(lease)
	if held := e.busyError(b.Mutex(name)); held.Remaining < extendTTL-time.Since(began)-slack ||
		held.Remaining > extendTTL {
		e.Errorf("%v remain at the server, %v after Extend", held.Remaining, time.Since(began))
	}
	e.release(lease)
	e.checkFree(b.Mutex(name))
}

// An Extend adds up to the max hold, and nothing if that is the TTL.
func extendMaxHold(e *env) {
	a, b := e.client(), e.client()
	for _, most := range []time.Duration{30 * time.Second, extendTTL} {
		lease := e.lock(a.Mutex(name, append(unrenewed, holdfast.WithMaxHold(most))...))
		granted, until := time.Now(), lease.Until()
		<-time.After(20 * time.Millisecond)
		e.extend(lease)
		if more := lease.Until().Sub(until); more > most-extendTTL+extendTTL/100 || most > extendTTL && more <= 0 {
			e.Errorf("trusted for another %v, with a max hold of %v", more, most)
		}
		asked := time.Now() // what remains is told of a moment after this
		if held := e.busyError(b.Mutex(name)); held.Remaining > most-asked.Sub(granted)+slack {
			e.Errorf("%v remain at the server, %v after the grant", held.Remaining, asked.Sub(granted))
		}
		e.release(lease)
	}
}

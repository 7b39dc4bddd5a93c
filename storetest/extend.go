package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

func extend() []test {
	return []test{
		{"lets it last for another TTL", extendLasts, 0},
		{"up to the max hold", extendMaxHold, 0},
		{"of a group", extendGroup, 0},
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

func extendGroup(e *env) {
	a, b := e.client(), e.client()
	lease := e.take(a.All([]string{"a", "b", "c"}, unrenewed...).Lock)
	e.checkExtends(lease)
	began := e.extend(lease)
	for _, n := range []string{"a", "b", "c"} {
		if held := e.busyError(b.Mutex(n)); held.Remaining < extendTTL-time.Since(began)-slack {
			e.Errorf("%v remain of %s at the server", held.Remaining, n)
		}
	}
	e.release(lease)
	e.checkIs(lease.Extend(e.ctx()), holdfast.ErrNotHeld)
}

package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

func wanting() []test {
	return []test{
		{"the holder is told of those that wait", wantedByWaiter, queue},
		{"the holder is told of those that ask", wantedByAsking, queue},
		{"the lead goes to the one that is named", transfers, queue},
	}
}

// awaitWanted waits until the holder of a lease is told that others want the name.
func (e *env) awaitWanted(lease *holdfast.Lease) {
	e.Helper()
	select {
	case <-lease.Wanted():
	case <-time.After(2 * patience):
		e.Error("the holder was not told")
	}
	e.checkHolds(lease)
}

func wantedByWaiter(e *env) {
	a, b := e.client(), e.client()
	for _, use := range e.uses() {
		if use.kind == "semaphore" || use.kind == "latch" {
			continue
		}
		lease := e.take(use.try(a, name, holdfast.WithWanted()))
		w := e.startWaiting(e.ctx(), b, use.rival(b, name))
		e.awaitWanted(lease)
		e.release(lease)
		e.release(w.await())
	}
}

func wantedByAsking(e *env) {
	a, b := e.client(), e.client()
	_, err := b.Ask(e.ctx(), name)
	e.checkIs(err, holdfast.ErrNotHeld)
	lease := e.lock(a.Mutex(name))
	wanted := lease.Wanted()
	told := 0
	for began := time.Now(); told == 0 && time.Since(began) < patience; { // until it listens
		if told, err = b.Mutex(name).Ask(e.ctx()); err != nil && !e.vague.Load() {
			e.Fatal(err)
		}
		<-time.After(time.Millisecond)
	}
	_, err = b.Ask(e.ctx(), name)
	e.must(err)
	<-wanted
	e.awaitWanted(lease)
	e.release(lease)
	if lease.Wanted() != nil {
		e.Error("a lease that has ended is wanted")
	}
}

func transfers(e *env) {
	a, b, c := e.client(label("A")), e.client(label("B")), e.client(label("C"))
	lease := e.take(a.Election(name).Campaign)
	one := e.startWaiting(e.ctx(), b, b.Election(name).Campaign)
	two := e.startWaiting(e.ctx(), c, c.Election(name).Campaign)
	e.checkIs(a.Election(name).Transfer(e.ctx(), "D"), holdfast.ErrNotWaiting)
	e.checkIs(b.Election(name).Transfer(e.ctx(), "C"), holdfast.ErrNotHeld)
	e.checkHolds(lease)
	e.must(a.Election(name).Transfer(e.ctx(), "C"))
	e.checkIs(lease.Err(), holdfast.ErrNotHeld)
	next := two.await()
	e.checkLarger(next, lease.Token())
	e.release(next)
	e.release(one.await())
}

func wantedRefused(e *env) {
	a := e.client()
	e.checkRefused(errorOf(a.Mutex(name, holdfast.WithWanted()).TryLock(e.ctx())), "WithWanted")
	lease := e.lock(a.Mutex(name))
	_, err := a.Ask(e.ctx(), name)
	e.checkUnsupported("Ask", err)
	e.release(lease)
	lease = e.take(a.Election(name).Campaign)
	e.checkUnsupported("Transfer", a.Election(name).Transfer(e.ctx(), "B"))
	e.release(lease)
}

package storetest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func place() []test {
	return []test{
		{"kept between the waits of two clients", placeBetweenWaits, 0},
		{"others pass while nobody waits there", placePassed, 0},
		{"of readers, a writer and permits", placeOfOtherKinds, 0},
		{"is given back", placeDiscarded, 0},
	}
}

// ticket joins the queue. An attempt without an answer is taken back.
func (e *env) ticket(m *holdfast.Mutex) (ticket holdfast.Ticket) {
	e.Helper()
	err := e.askUntilAnswered(func() (err error) { ticket, err = m.Ticket(e.ctx(), 10*time.Minute); return err })
	if err != nil {
		e.Fatalf("Ticket: %v", err)
	}
	return ticket
}

// attachPlace waits at a place until the lock is held.
func (e *env) attachPlace(c *client, ticket holdfast.Ticket) *holdfast.Lease {
	e.Helper()
	return e.goTake(e.ctx(), attachFunc(c, ticket)).await()
}

func (e *env) checkTicketError(err error, reason holdfast.Reason) {
	e.Helper()
	var refused *holdfast.TicketError
	if !errors.As(err, &refused) || !errors.Is(err, holdfast.ErrTicket) || refused.Reason != reason {
		e.Errorf("got %v, want a TicketError because %s", err, reason)
	}
}

func placeBetweenWaits(e *env) {
	a, b, c, d := e.client(label("A")), e.client(label("B")), e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ticket := e.ticket(b.Mutex(name))
	for range 2 {
		if ended := e.giveUp(c, attachFunc(c, ticket)); ended.Name != name || ended.Holder != "A" {
			e.Errorf("got %+v", ended)
		}
	}
	w := e.startWaiting(e.ctx(), d, attachFunc(d, ticket))
	e.release(lease)
	next := w.await()
	if held := e.busyError(a.Mutex(name)); held.Holder != "B" {
		e.Errorf("held by %q", held.Holder)
	}
	if next.Name() != name || next.Token() <= lease.Token() {
		e.Errorf("%q with token %d after %d", next.Name(), next.Token(), lease.Token())
	}
	e.release(next)
}

func placePassed(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	ticket := e.ticket(b.Mutex(name))
	e.giveUp(b, attachFunc(b, ticket))
	w := e.startWaiting(e.ctx(), c, c.Mutex(name).Lock)
	e.release(lease)
	e.release(w.await())
	e.checkFree(c.Mutex(name))
	e.release(e.attachPlace(a, ticket))
}

func placeOfOtherKinds(e *env) {
	a, b := e.client(), e.client()
	rw := a.RWMutex(name)
	var write, read, permits holdfast.Ticket
	tickets := func(f func() error) {
		e.Helper()
		e.must(e.askUntilAnswered(f))
	}
	reader := e.take(rw.RLock)
	tickets(func() (err error) { write, err = rw.Ticket(e.ctx(), 0); return err })
	tickets(func() (err error) { read, err = rw.RTicket(e.ctx(), 0); return err })
	second := e.attachPlace(b, read) // it passes the writer's place, where nobody waits
	w := e.startWaiting(e.ctx(), b, attachFunc(b, write))
	e.release(reader)
	e.release(second)
	e.release(w.await())

	if e.backend.NoSemaphores {
		return
	}
	s := a.Semaphore("permits", 3)
	lease := e.take(acquire(s, 2, false))
	tickets(func() (err error) { permits, err = s.Ticket(e.ctx(), 2, 0); return err })
	e.release(e.take(acquire(s, 1, true)))
	w = e.startWaiting(e.ctx(), b, attachFunc(b, permits))
	e.release(lease)
	e.release(w.await())
}

func placeRefused(e *env) {
	c := e.client()
	began := time.Now()
	_, err := c.Mutex(name).Ticket(e.ctx(), 0)
	e.checkUnsupported("Ticket", err)
	_, err = c.RWMutex(name).RTicket(e.ctx(), 0)
	e.checkUnsupported("RTicket", err)
	e.checkAtOnce(c, began)
}

func placeDiscarded(e *env) {
	a, b := e.client(), e.client()
	discard := func(ticket holdfast.Ticket) error {
		return e.askUntilAnswered(func() error { return b.DiscardTicket(e.ctx(), ticket) })
	}
	lease := e.lock(a.Mutex(name))
	ticket := e.ticket(a.Mutex(name))
	e.must(discard(ticket))
	e.checkTicketError(discard(ticket), holdfast.TicketGone)
	e.checkTicketError(e.lockError(attachFunc(b, ticket)), holdfast.TicketGone)
	e.release(lease)
	// Of a free name, the ticket holds.
	ticket = e.ticket(a.Mutex(name + "/2"))
	e.must(discard(ticket))
	e.release(e.lock(b.Mutex(name + "/2")))
}

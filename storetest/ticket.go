package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func tickets() []test {
	return []test{
		{"another process goes on", ticketMoves, 0},
		{"of a reader, and of a writer that was downgraded", ticketReader, 0},
		{"of a lease with a min hold and a max hold", ticketTimes, leaves},
		{"of a lease without renewal", ticketFixed, 0},
		{"is checked, which prolongs nothing", ticketChecked, 0},
		{"used twice", ticketTwice, 0},
		{"of what was released", ticketReleased, 0},
		{"of what has expired", ticketExpired, 0},
	}
}

// detach lets a lease leave the process.
func (e *env) detach(lease *holdfast.Lease) holdfast.Ticket {
	e.Helper()
	ticket, err := lease.Detach()
	e.must(err)
	e.checkIs(lease.Err(), holdfast.ErrNotHeld)
	if cause := context.Cause(leased.Context(lease)); !errors.Is(cause, context.Canceled) {
		e.Errorf("the context ended with %v", cause)
	}
	return ticket
}

// attachFunc returns the method that takes a ticket up.
func attachFunc(c *client, ticket holdfast.Ticket) lockFunc {
	return func(ctx context.Context) (*holdfast.Lease, error) { return c.Attach(ctx, ticket) }
}

// attach takes a ticket up, whose hold must be there.
func (e *env) attach(c *client, ticket holdfast.Ticket) *holdfast.Lease {
	e.Helper()
	return e.take(attachFunc(c, ticket))
}

// moveLease lets a lease leave one client for another, whose renewals keep it from then on.
func (e *env) moveLease(lease *holdfast.Lease, to *client) *holdfast.Lease {
	e.Helper()
	again := e.attach(to, e.detach(lease))
	if again.Token() != lease.Token() || again.Name() != lease.Name() || again.Owner() != lease.Owner() {
		e.Errorf("token %d, name %q, owner %q, want %d, %q, %q", again.Token(), again.Name(), again.Owner(),
			lease.Token(), lease.Name(), lease.Owner())
	}
	e.checkHolds(again)
	return again
}

func ticketMoves(e *env) {
	const ttl = 2 * time.Second
	a, b, other := e.client(label("A")), e.client(label("B")), e.client()
	uses := e.uses()
	leases := make([]*holdfast.Lease, len(uses))
	for i, use := range uses {
		leases[i] = e.moveLease(e.take(use.try(a, fmt.Sprint(i), holdfast.WithTTL(ttl))), b)
	}
	names := []string{"a", "b"}
	group := e.moveLease(e.take(a.All(names, holdfast.WithTTL(ttl)).Lock), b)
	<-time.After(ttl + ttl/2) // they would be over, without renewal
	e.checkHolds(append(leases, group)...)
	e.busyError(other.Mutex("b"))
	e.release(group)
	e.release(e.take(other.All(names).TryLock))
	for i, use := range uses {
		held := e.heldError(use.rival(other, fmt.Sprint(i), holdfast.WithPolling(time.Millisecond, 1)))
		if held.Holder != "A" || held.Holders != 1 {
			e.Errorf("a %s: got %+v", use.kind, held)
		}
		e.release(leases[i])
		e.release(e.take(use.rival(other, fmt.Sprint(i))))
	}
}

func ticketReader(e *env) {
	a, b := e.client(), e.client()
	write, read := a.RWMutex(name), a.RWMutex(name, holdfast.WithStrictOrder())
	lease := e.moveLease(e.take(write.Lock), b)
	e.checkIs(e.lockError(read.TryRLock), holdfast.ErrHeld)
	e.downgrade(lease)
	beside := e.take(read.TryRLock)
	again := e.moveLease(lease, a)
	e.release(beside)
	e.checkIs(e.lockError(write.TryLock), holdfast.ErrHeld)
	third := e.moveLease(e.take(read.TryRLock), b)
	e.release(again)
	e.checkIs(e.lockError(write.TryLock), holdfast.ErrHeld)
	e.release(third)
	e.release(e.take(write.TryLock))
}

func ticketTimes(e *env) {
	const least, most = 3 * time.Second, 6 * time.Second
	a, b := e.client(), e.client()
	began := time.Now()
	lease := e.moveLease(e.lock(a.Mutex(name, holdfast.WithTTL(2*time.Second), holdfast.WithMinHold(least),
		holdfast.WithMaxHold(most))), b)
	e.awaitLoss(lease, holdfast.LossMaxHold)
	if took := time.Since(began); took < 2*time.Second || e.judgesTimes() && took > most {
		e.Errorf("lost %v after the lock, want less than %v", took, most)
	}
	_ = lease.Release()
	e.release(e.lock(a.Mutex(name)))
	min := e.moveLease(e.lock(a.Mutex(name, holdfast.WithMinHold(least))), b)
	e.release(min)
	began = time.Now()
	e.release(e.lock(a.Mutex(name)))
	if took := time.Since(began); e.judgesTimes() && took < least/2 {
		e.Errorf("free %v after its release, want some %v", took, least)
	}
}

func ticketFixed(e *env) {
	const ttl = 3 * time.Second
	a, b := e.client(), e.client()
	m := a.Mutex(name, holdfast.WithTTL(ttl), holdfast.WithoutRenewal())
	asked := time.Now()
	lease := e.lock(m)
	granted, until := time.Now(), lease.Until()
	<-time.After(ttl / 10)
	attached := time.Now()
	again := e.moveLease(lease, b)
	sampling := time.Since(attached) // the server's clock is known as exactly as a request lasts
	// The first process trusts the hold from the sending of its request on, however late the server
	// got that. The next one knows when the server did.
	if late := again.Until().Sub(until); late > granted.Sub(asked) {
		e.Errorf("prolonged by %v, and the request lasted %v", late, granted.Sub(asked))
	}
	passed := time.Since(granted)
	left := e.busyError(b.Mutex(name)).Remaining
	if again.Until().After(time.Now().Add(left)) {
		e.Errorf("trusted for %v, and held at the server for %v", time.Until(again.Until()), left)
	}
	if left > ttl-passed+slack+sampling {
		e.Errorf("held at the server for %v more, %v after the grant", left, passed)
	}
	if early := until.Sub(again.Until()); e.judgesTimes() && early > ttl/4 {
		e.Errorf("trusted for %v less than before", early)
	}
	e.awaitLoss(again, holdfast.LossExpired)
	e.checkLost(again.Release(), holdfast.LossExpired)
	e.release(e.lock(a.Mutex(name)))
}

func ticketTwice(e *env) {
	a, b := e.client(), e.client()
	ticket := e.detach(e.lock(a.Mutex(name, holdfast.WithTTL(2*time.Second))))
	here, there := e.attach(a, ticket), e.attach(b, ticket)
	if here.Token() != there.Token() {
		e.Errorf("tokens %d and %d", here.Token(), there.Token())
	}
	e.release(there)
	e.awaitLoss(here, holdfast.LossGone)
	e.checkFree(b.Mutex(name))
}

func ticketReleased(e *env) {
	a, b := e.client(), e.client()
	ticket := e.detach(e.lock(a.Mutex(name)))
	e.release(e.attach(b, ticket))
	next := e.lock(a.Mutex(name))
	e.checkTicketError(e.lockError(attachFunc(b, ticket)), holdfast.TicketGone)
	e.checkHolds(next)
	e.release(next)
}

func ticketExpired(e *env) {
	a := e.client()
	ticket := e.detach(e.lock(a.Mutex(name, holdfast.WithTTL(200*time.Millisecond))))
	e.release(e.lock(e.client().Mutex(name))) // nobody renews it
	e.checkTicketError(e.lockError(attachFunc(a, ticket)), holdfast.TicketGone)
}

func ticketChecked(e *env) {
	a, b := e.client(), e.client()
	ticket := e.detach(e.lock(a.Mutex(name, holdfast.WithTTL(time.Second))))
	check := func() error { return e.askUntilAnswered(func() error { return b.CheckTicket(e.ctx(), ticket) }) }
	e.must(check())
	// It ends as if nobody had asked.
	if !soon(func() bool { return check() != nil }) {
		e.Errorf("it is prolonged by asking")
	}
	e.checkTicketError(check(), holdfast.TicketGone)
	again := e.detach(e.lock(a.Mutex(name)))
	e.release(e.attach(b, again))
	e.checkTicketError(e.askUntilAnswered(func() error { return b.CheckTicket(e.ctx(), again) }), holdfast.TicketGone)
	e.checkRefused(b.CheckTicket(e.ctx(), "no ticket"), "ticket")
}

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

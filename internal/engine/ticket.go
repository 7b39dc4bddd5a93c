package engine

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// switchToNoMessages changes to a ticket without messages when subscribing is not allowed. A
// hand-over must not wait for a process that no message reaches.
func (a *attempt) switchToNoMessages(err error) bool {
	if a.ticket.NoMessages || !isDenied(err) {
		return false
	}
	a.engine.config.Logger.Warn("holdfast: may not subscribe; waiting by asking", "name", a.call.name, "error", err)
	a.replace(a.lock, true)
	return true
}

// adoptResize changes to the number of permits that the server named in err, if it accepted another
// before. The payload of a ticket says the number and never changes, so the ticket is new as well.
// No place is given up for that: the server does not refuse a ticket that holds or is queued.
func (a *attempt) adoptResize(err error) bool {
	l := a.lock.withPermitsFrom(err)
	if l == nil || !a.permitsAccepted {
		return false
	}
	e := a.engine
	e.mu.Lock()
	a.answered, a.failure = true, nil
	// The pool serves the waiters that it has. A new caller with the old number asks for itself, as
	// the server must see that number to refuse it.
	delete(e.pools, a.lock.key())
	e.mu.Unlock()
	a.replace(l, a.ticket.NoMessages)
	a.call.observeRetry(err)
	return true
}

// dropBroken changes to a new ticket if err says that the hold of the ticket was broken. No lease
// was made of it, so what is left of it is given back at once.
func (a *attempt) dropBroken(err error) bool {
	var broken *protocol.Broken
	if !errors.As(err, &broken) {
		return false
	}
	a.engine.config.Logger.Warn("holdfast: the hold was broken before it was taken up; asking anew", "name",
		a.call.name, "by", broken.By)
	a.to(attemptKnown) // the server has something of the ticket
	a.replace(a.lock, a.ticket.NoMessages)
	return true
}

// replace changes to a new ticket. A cleanup gives back what the server has of the old one, or may
// yet get. A hand-over to the old ticket is dropped: it is none to the new one. The engine's mutex
// is not held.
func (a *attempt) replace(l *Lock, noMessages bool) {
	e, old, request, mayApplyUntil := a.engine, a.lock, protocol.FreeRequest{Ticket: a.ticket}, a.mayApplyUntil
	e.mu.Lock()
	delete(e.waits, a.ticket.ID)
	a.ticket.ID, a.ticket.NoMessages = protocol.NewID(), noMessages
	e.waits[a.ticket.ID] = &a.waitLoop
	a.mailbox.messages.grant = nil
	e.mu.Unlock()
	if a.state == attemptKnown || a.clock.isKnown() || !mayApplyUntil.IsZero() {
		until := time.Now().Add(max(old.grantTTL, protocol.PlaceLife))
		e.cleanup(old, request, until, mayApplyUntil)
	}
	a.to(attemptNew)
	a.lock, a.mayApplyUntil, a.clock = l, time.Time{}, clockSample{} // nothing is known of the new ticket
}

// abandon gives up an attempt that does not hold. A cleanup in the background frees the place or
// the hold that the server has of its ticket, or may still get, until that is certain. An attempt
// that holds stays as it is: its hold is released by other means. The goroutine that runs the
// attempt calls it, with the engine's mutex held.
func (a *attempt) abandon() {
	e := a.engine
	delete(e.waits, a.ticket.ID)
	queued := a.state == attemptKnown
	if !a.to(attemptAbandoned) {
		return
	}
	until := time.Now().Add(max(a.lock.grantTTL, protocol.PlaceLife))
	if a.release != nil { // no request was answered that gave it back
		e.cleanup(a.lock, protocol.FreeRequest{Ticket: *a.release}, until, time.Time{})
	}
	if queued || !a.mayApplyUntil.IsZero() {
		e.cleanup(a.lock, protocol.FreeRequest{Ticket: a.ticket}, until, a.mayApplyUntil)
	}
}

// abandon abandons attempts that did not win.
func (e *Engine) abandon(attempts []*attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range attempts {
		a.abandon()
	}
}

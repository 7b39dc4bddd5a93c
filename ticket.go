package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/ticketcode"
)

// A Ticket is a lease that has left its process ([Lease.Detach]), or a place in the queue
// ([Mutex.Ticket]). It is a text of one line without spaces, which Client.Attach takes up. The text
// is a secret: a process that has it, and access to the server, has the lock.
//
// Have one lease of a ticket at a time. Two leases of one ticket do not exclude each other, and
// have one fencing token. The release of one frees the lock for other contenders. The other lease
// is told by the answer to its next renewal, and is trusted until then.
type Ticket string

// IsPlace reports whether the ticket is of a place in the queue. Nothing is sent.
func (t Ticket) IsPlace() bool {
	kind, _, err := ticketcode.Decode(string(t))
	return err == nil && kind == ticketcode.Place
}

// The reasons of a TicketError.
const (
	TicketPrefix Reason = "it is of clients with another prefix" // see Config.Prefix
	TicketFormat Reason = "it has another format"                // of another version, or of other servers
	TicketGone   Reason = "there is no such hold or place: it was released, has expired, or is at another server"
	TicketBroken Reason = "the hold was broken" // by an operator, with Client.Break
)

// A TicketError says why a ticket cannot be attached. It matches ErrTicket.
type TicketError struct {
	Name   string // the lock, or of a group the name of which this is true; empty if it cannot be read
	Reason Reason
	By     string // the label of the client that broke the hold, if one did
}

func (e *TicketError) Error() string {
	text := prefix + "ticket"
	if e.Name != "" {
		text += fmt.Sprintf(" of %q", shorten(e.Name))
	}
	return text + ": " + string(e.Reason) + byText(e.By)
}

// Is matches ErrTicket.
func (e *TicketError) Is(target error) bool { return target == ErrTicket }

// Ticket joins the queue, in one request, and returns a ticket for the place. Client.Attach waits
// with the ticket, in this process and in others, one after the other. It is for scripts and CI
// steps, whose caller is not one process.
//
// The place is kept for so long after the last request of a wait: from 1 s to 10 min, in whole
// milliseconds; 0 means 1 min. While no process waits with the ticket, all others pass the place.
// If the mutex is free, the ticket holds it at once, for a TTL, and Attach takes that hold up.
//
// After an error there is neither a place nor a hold, as after TryLock, whose errors it has except
// ErrHeld. WithoutRenewal, WithMinHold, WithMaxHold and WithPolling are refused with an
// *ArgumentError. A quorum has no queue; there the error is a *StoreError that says so.
func (m *Mutex) Ticket(ctx context.Context, keep time.Duration) (Ticket, error) {
	if err := m.check(ctx); err != nil {
		return "", err
	}
	return placeTicket(ctx, "Mutex", m.lock, keep)
}

// Ticket is that of Mutex, for a place of a writer.
func (m *RWMutex) Ticket(ctx context.Context, keep time.Duration) (Ticket, error) {
	if err := m.check(ctx); err != nil {
		return "", err
	}
	return placeTicket(ctx, "RWMutex", m.write, keep)
}

// RTicket is Ticket for a place of a reader.
func (m *RWMutex) RTicket(ctx context.Context, keep time.Duration) (Ticket, error) {
	if err := m.check(ctx); err != nil {
		return "", err
	}
	return placeTicket(ctx, "RWMutex", m.read, keep)
}

// Ticket is that of Mutex, for n permits. The place stays through a Resize.
func (s *Semaphore) Ticket(ctx context.Context, n int64, keep time.Duration) (Ticket, error) {
	if err := s.check(ctx, n); err != nil {
		return "", err
	}
	return placeTicket(ctx, "Semaphore", s.lock.Weigh(n), keep)
}

// placeTicket joins the queue of a lock.
func placeTicket(ctx context.Context, kind string, lock *engine.Lock, keep time.Duration) (Ticket, error) {
	if keep == 0 {
		keep = time.Minute
	}
	call := handleText(kind, lock.Spec().Name) + ".Ticket"
	if !limits.IsKeep(keep) {
		return "", badArgument(call, "keep", keep, "0, or from 1s to 10m in whole milliseconds")
	}
	place, err := lock.Place(ctx, keep)
	switch {
	case errors.Is(err, engine.ErrOwnTimes):
		return "", badArgument(call, "lock", "with WithoutRenewal, WithMinHold, WithMaxHold or WithPolling",
			"one without these options")
	case err != nil:
		_, err = newLease(kind, lock, nil, err)
		return "", err
	}
	return newTicket(ticketcode.Place, []engine.Detached{place}), nil
}

// Detach lets the lease leave this process. It sends nothing. The lease is over, its contexts end
// with context.Canceled, and this process renews the hold no more. The hold stays at the server
// until it ends there: a margin after the moment that Until said before, or a little later, and not
// before the end of a min hold. A process that attaches the ticket before that has the same hold
// and the same token. Otherwise the lock is free then.
//
// Goroutines of this process that wait for the lock go on to wait. After an answer was lost, Detach
// may wait until no earlier request can arrive any more, for at most a second. Options of the
// handle that say how the lock is held go with the ticket: owner, label, TTL, min hold, max hold
// and whether it is renewed. The ticket of a group's lease is for all of its names.
//
// After an error the lease is as it was before. It is an *ArgumentError if other leases are in the
// same hold, or if a downgrade of it is under way. Otherwise it is ErrNotHeld after Release or
// Detach, the *LostError of a lost lease, or ErrClosed.
func (l *Lease) Detach() (Ticket, error) {
	if l.isNone() {
		return "", ErrNotHeld
	}
	holds, err := l.inner.Detach()
	refuse := func(allowed string) error {
		return badArgument("Lease.Detach", "lease", "of "+shorten(l.inner.Name()), allowed)
	}
	switch {
	case errors.Is(err, engine.ErrShared):
		return "", refuse("one that is alone in its hold: release the others before")
	case errors.Is(err, engine.ErrDowngrading):
		return "", refuse("one whose downgrade was answered")
	case err != nil:
		return "", publicError("detach", l.inner.Name(), err)
	}
	return newTicket(ticketcode.Hold, holds), nil
}

// Attach takes up a ticket, in this process or in another one. The lease is then as any other. TTL,
// label and all other options are those of the handle that made the ticket. The client must have
// its Config.Prefix and its servers. If ctx is over before the call, nothing is sent.
//
// A detached lease is taken up at once: the same hold, with the same token, which Attach renews. A
// lease with a max hold or a min hold, or without renewal, costs a second request, for the server's
// time. These count from the grant, by the server's clock alone. If that clock was set back since,
// they end later by as much; a lease WithoutRenewal ends a TTL after Attach at the latest. ctx
// bounds the requests; each takes at most the smaller of a sixth of the TTL and 1 s.
//
// At a place, Attach waits until the lock is held or ctx ends. It never joins the queue again. When
// ctx ends, it returns when its last request was answered, within two seconds. The error is then a
// *WaitError, and the next Attach goes on at the place. If that request finds that the lock was
// granted meanwhile, Attach returns the lease. If it has no answer, the ticket may hold the lock
// for up to a TTL, for the next Attach to find. A hold that an earlier process got with the ticket,
// and has not released, is taken up with the same token and a full TTL.
//
// A place gets the lock only by asking on a cluster without sharded channels (Redis before 7), and
// where the server refuses PUBSUB. Callers behind it that wait all the time may then pass it.
//
// After an error nothing is attached, and the ticket is as good as before, with two exceptions.
// After a *TicketError it is of no use to this client, or of no use any more. After a *WaitError
// with WaitEvicted (Client.Evict) the place is gone. Only of a group, holds may have been renewed
// once. Other errors are those of every call. At a place, a *StoreError is a refusal that waiting
// does not cure, as for Mutex.Lock.
func (c *Client) Attach(ctx context.Context, ticket Ticket) (*Lease, error) {
	kind, holds, err := c.readTicket(ctx, "Client.Attach", ticket)
	if err != nil {
		return nil, err
	}
	var inner innerLease
	switch {
	case kind == ticketcode.Place:
		inner, err = c.engine.AttachWait(ctx, holds[0])
	case len(holds) == 1:
		inner, err = c.engine.Attach(ctx, holds[0])
	default:
		inner, err = c.engine.AttachGroup(ctx, holds)
	}
	if err != nil {
		return nil, attachError("attach", holds[0].Spec.Name, err)
	}
	return &Lease{inner: inner}, nil
}

// CheckTicket reports whether the lease of a ticket is still there, in one request that prolongs
// nothing and takes nothing up. Nil says that it was there when the server answered. The errors are
// those of Attach. An *ArgumentError refuses the ticket of a place.
func (c *Client) CheckTicket(ctx context.Context, ticket Ticket) error {
	const call = "Client.CheckTicket"
	kind, holds, err := c.readTicket(ctx, call, ticket)
	if err != nil {
		return err
	}
	if kind == ticketcode.Place {
		return badArgument(call, "ticket", "of a place in the queue of "+shorten(holds[0].Spec.Name),
			"one of a lease, which Detach returned")
	}
	return attachError("check", holds[0].Spec.Name, c.engine.CheckDetached(ctx, holds))
}

// DiscardTicket gives back what the server has of a ticket, in one request for each name. Of
// Mutex.Ticket that is the place, or the hold that the place came to. Of Lease.Detach it is the
// hold, or what remains of it after Client.Break: so the caller says that no code works under the
// ticket any more. The errors are those of Attach. After a *StoreError DiscardTicket may be called
// again.
func (c *Client) DiscardTicket(ctx context.Context, ticket Ticket) error {
	kind, holds, err := c.readTicket(ctx, "Client.DiscardTicket", ticket)
	if err != nil {
		return err
	}
	if kind == ticketcode.Place {
		err = c.engine.DropPlace(ctx, holds[0])
	} else {
		err = c.engine.DropDetached(ctx, holds)
		c.recordDiscarded(holds, err)
	}
	return attachError("discard", holds[0].Spec.Name, err)
}

func newTicket(kind ticketcode.Kind, holds []engine.Detached) Ticket {
	return Ticket(ticketcode.Encode(kind, holds))
}

// readTicket reads a ticket for a call, and refuses one of another prefix.
func (c *Client) readTicket(ctx context.Context, call string, ticket Ticket) (
	kind ticketcode.Kind, holds []engine.Detached, err error) {
	if c == nil || c.engine == nil {
		return 0, nil, zeroHandleError("Client", "a client that New made")
	}
	var bad problems
	bad.check(ctx != nil, "ctx", nil, "not nil")
	kind, holds, err = ticketcode.Decode(string(ticket))
	bad.check(!errors.Is(err, ticketcode.ErrNoTicket), "ticket", "of "+fmt.Sprint(len(ticket))+" bytes",
		"the whole text that Detach or a Ticket method returned")
	switch wrong := bad.err(call); {
	case wrong != nil:
		return 0, nil, wrong
	case err != nil:
		return 0, nil, &TicketError{Reason: TicketFormat}
	case holds[0].Prefix != c.config.Prefix:
		return 0, nil, &TicketError{Name: holds[0].Spec.Name, Reason: TicketPrefix}
	}
	return kind, holds, nil
}

// attachError translates what the engine answers.
func attachError(op, name string, err error) error {
	var refused *engine.AttachError
	var part *engine.PartError
	if errors.As(err, &part) {
		name = part.Name
	}
	switch {
	case errors.As(err, &refused) && refused.Why == engine.Broken:
		return &TicketError{Name: refused.Name, Reason: TicketBroken, By: refused.By}
	case refused != nil:
		return &TicketError{Name: refused.Name, Reason: TicketGone}
	case errors.Is(err, protocol.ErrOrigin):
		return &TicketError{Name: name, Reason: TicketFormat}
	}
	err = publicError(op, name, err)
	var failed *StoreError
	if errors.As(err, &failed) {
		failed.Op = op // and not that of one of its requests
	}
	return err
}

package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Ticket is a lease that has left its process (Lease.Detach), as a text of one line without
// spaces. Or it is a place in the queue (Mutex.Ticket), as such a text. Client.Attach takes up
// either, in this process or in another one.
//
// The text is a secret: a process that has it, and access to the server, has the lock. Keep it as
// you keep a password.
//
// A ticket may be used more than once, but have one lease of it at a time. Two leases of one ticket
// do not exclude each other, and have one fencing token. The release of one frees the lock for
// other contenders. The other lease is told by the answer to its next renewal, and is trusted until
// then.
type Ticket string

// IsPlace reports whether the ticket is of a place in the queue, so that Client.Attach waits. It
// sends nothing, and returns false for a text that is no ticket.
func (t Ticket) IsPlace() bool {
	of, _, err := decodeTicket(t)
	return err == nil && of == ticketOfPlace
}

// The reasons of a TicketError.
const (
	// TicketPrefix: the ticket is of clients with another Config.Prefix.
	TicketPrefix Reason = "it is of clients with another prefix"

	// TicketFormat: another version of this library wrote the ticket, or a client on other servers.
	// A ticket of a quorum is of use to a quorum with as many masters only.
	TicketFormat Reason = "it has another format"

	// TicketGone: the server has no such hold, and no such place. Nobody can tell whether it was
	// released, has expired, or is at another server.
	TicketGone Reason = "there is no such hold or place: it was released, has expired, or is at another server"

	// TicketBroken: an operator ended the hold with Client.Break.
	TicketBroken Reason = "the hold was broken"
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
		text += fmt.Sprintf(" of %q", shortened(e.Name))
	}
	return text + ": " + string(e.Reason) + byWhom(e.By)
}

// Is matches ErrTicket.
func (e *TicketError) Is(target error) bool { return target == ErrTicket }

// Detach lets the lease leave this process. It sends nothing. The lease is over, its context ends
// with context.Canceled, and this process renews the hold no more. The hold stays at the server
// until it ends there. That is a margin after the moment that Until said before, or a little later,
// and not before the end of a min hold. A process that attaches the ticket before that has the same
// hold and the same token. Otherwise the lock is free then.
//
// Goroutines of this process that wait for the lock go on to wait, as those of other processes do.
// After an answer was lost, Detach may wait until no earlier request can arrive any more, for at
// most a second. The ticket of a group's lease is for all of its names. Options of the handle that
// say how the lock is held go with the ticket: owner, label, TTL, min hold, max hold and whether it
// is renewed.
//
// After an error the lease is as it was before. The errors are:
//
//   - An *ArgumentError: other leases are in the same hold. They entered it under this lease's
//     context, or they are readers of this process that share it. Or a downgrade of the hold is
//     under way.
//   - ErrNotHeld after Release or Detach, the *LostError of a lost lease, or ErrClosed.
func (l *Lease) Detach() (Ticket, error) {
	if l.empty() {
		return "", ErrNotHeld
	}
	holds, err := l.inner.Detach()
	var bad problems
	switch {
	case errors.Is(err, engine.ErrShared):
		bad.add("lease", "of "+shortened(l.inner.Name()), "one that is alone in its hold: release the others before")
	case errors.Is(err, engine.ErrDowngrading):
		bad.add("lease", "of "+shortened(l.inner.Name()), "one whose downgrade was answered")
	case err != nil:
		return "", public("detach", l.inner.Name(), err)
	default:
		return encodeTicket(ticketOfHold, holds), nil
	}
	return "", bad.err("Lease.Detach")
}

// Attach takes up a ticket of Lease.Detach, or of Mutex.Ticket and the methods like it, in this
// process or in another one. The lease is then as any other: it is renewed, Release gives it back,
// and Detach lets it leave the process. TTL, label and all other options are those of the handle
// that made the ticket. The client must have its Config.Prefix and its servers.
//
// A detached lease is taken up at once: the same hold, with the same token. Attach asks the server
// once whether the hold is there, and renews it with the same request. A lease with a max hold or a
// min hold, or without renewal, costs one request more, for the server's time. These count from the
// grant, by the server's clock alone. If that clock was set back since, they end later by as much;
// a lease WithoutRenewal ends a TTL after Attach at the latest. The server keeps the hold for as
// long, so nobody else is let in before. ctx bounds the requests; each takes at most the smaller of
// a sixth of the TTL and 1 s.
//
// At a place, Attach waits until the lock is held or ctx ends. It never joins the queue again. When
// ctx ends, the error is a *WaitError and the place is kept. The next Attach goes on there, from
// whichever process. Attach returns when its last request was answered, within two seconds. If that
// request finds that the lock was granted meanwhile, Attach returns the lease although ctx is over.
// If it has no answer, the lock may be held for up to a TTL by the ticket, for the next Attach to
// find. If an earlier process got the lock with this ticket and has not released it, the caller
// gets the same hold, with the same token and a full TTL. If ctx is over before the call, nothing
// is sent.
//
// A place gets the lock only by asking on a cluster without sharded channels (Redis before 7), and
// where the server refuses PUBSUB. Callers behind it that wait all the time may then pass it.
//
// After an error nothing is attached, and the server has what it had before. Only of a group, and
// after a *StoreError, holds may have been renewed once. The errors are:
//
//   - An *ArgumentError: the text is not a whole ticket, or ctx is nil.
//   - A *TicketError, which matches ErrTicket: the ticket is of no use to this client, or of no use
//     any more.
//   - A *StoreError, or a *QuorumError: no answer came, or the server refused. The ticket is as
//     good as before. At a place, it is a refusal that waiting does not cure, as for Mutex.Lock.
//   - A *WaitError: ctx is over. Or its Reason is WaitEvicted: an operator evicted the ticket
//     (Client.Evict), and the place is gone.
//   - ErrClosed: the client is closed. The ticket is as good as before.
func (c *Client) Attach(ctx context.Context, ticket Ticket) (*Lease, error) {
	of, holds, err := c.decoded(ctx, "Client.Attach", ticket)
	if err != nil {
		return nil, err
	}
	var inner held
	switch {
	case of == ticketOfPlace:
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
// those of Attach. An *ArgumentError refuses the ticket of a place: only waiting there tells.
func (c *Client) CheckTicket(ctx context.Context, ticket Ticket) error {
	const call = "Client.CheckTicket"
	of, holds, err := c.decoded(ctx, call, ticket)
	if err != nil {
		return err
	}
	if of == ticketOfPlace {
		var bad problems
		bad.add("ticket", "of a place in the queue of "+shortened(holds[0].Spec.Name), "one of a lease, which Detach returned")
		return bad.err(call)
	}
	return attachError("check", holds[0].Spec.Name, c.engine.CheckDetached(ctx, holds))
}

// DiscardTicket gives back what the server has of a ticket, in one request for each name. Of a
// ticket that a Ticket method made, it gives back the place, and with it the hold that the place
// may have come to. Of a ticket that Detach made, it gives back the hold, or what remains of it
// after Client.Break: so the caller says that no code works under the ticket any more. Nil says
// that it is done.
//
// The errors are those of Client.Attach. After a *TicketError the server has nothing of the ticket.
// After a *StoreError it may have some, and DiscardTicket may be called again.
func (c *Client) DiscardTicket(ctx context.Context, ticket Ticket) error {
	of, holds, err := c.decoded(ctx, "Client.DiscardTicket", ticket)
	if err != nil {
		return err
	}
	if of == ticketOfPlace {
		err = c.engine.DropPlace(ctx, holds[0])
	} else {
		err = c.engine.DropDetached(ctx, holds)
	}
	return attachError("discard", holds[0].Spec.Name, err)
}

// decoded reads a ticket for a call, and refuses one of another prefix.
func (c *Client) decoded(ctx context.Context, call string, ticket Ticket) (of byte, holds []engine.Detached, err error) {
	if c == nil || c.engine == nil {
		return 0, nil, zeroHandle("Client", "a client that New made")
	}
	var bad problems
	bad.check(ctx != nil, "ctx", nil, "not nil")
	of, holds, err = decodeTicket(ticket)
	bad.check(!errors.Is(err, errNoTicket), "ticket", "of "+fmt.Sprint(len(ticket))+" bytes",
		"the whole text that Detach or a Ticket method returned")
	switch wrong := bad.err(call); {
	case wrong != nil:
		return 0, nil, wrong
	case err != nil:
		return 0, nil, err
	case holds[0].Prefix != c.config.Prefix:
		return 0, nil, &TicketError{Name: holds[0].Spec.Name, Reason: TicketPrefix}
	}
	return of, holds, nil
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
	err = public(op, name, err)
	var failed *StoreError
	if errors.As(err, &failed) {
		failed.Op = op // and not that of one of its requests
	}
	return err
}

package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Ticket is a lease that has left its process (Lease.Detach), as a text of one line without
// spaces. Another process, or this one, takes it up again with Client.Attach. Or it is a place in
// the queue (Mutex.Ticket), at which Client.AttachWait waits.
//
// The text is a secret: a process that has it, and access to the server, has the lock. Keep it as
// you keep a password.
//
// A ticket may be used more than once, but have one lease of it at a time. Two leases of one ticket
// do not exclude each other, and have one fencing token. The release of one frees the lock for
// other contenders. The other lease is told by the answer to its next renewal, and is trusted until
// then.
type Ticket string

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

// Attach takes up a lease that was detached, in this process or in another one: the same hold, with
// the same token. It asks the server once whether the hold is there, and renews it with the same
// request. A lease with a max hold or a min hold, or without renewal, costs one request more, for
// the server's time. From then on the lease is as any other: it is renewed, and Release gives it
// back. One WithoutRenewal is not prolonged: it ends when it would have ended.
//
// A max hold, a min hold and the end of a lease WithoutRenewal count from the grant, by the
// server's clock alone. If that clock was set back since the grant, they end later by as much;
// a lease WithoutRenewal ends a TTL after Attach at the latest. The server keeps the hold for as
// long, so nobody else is let in before.
//
// TTL, label and all other options are those of the detached lease, not of this client. The client
// must have its Config.Prefix and its servers. The lease has the values of ctx. ctx bounds the
// requests alone; each takes at most the smaller of a sixth of the TTL and 1 s. Goroutines of this
// process get the hold only by its context.
//
// After an error nothing is attached, and the server has what it had before. Only of a group, and
// after a *StoreError, holds may have been renewed once. The errors are:
//
//   - An *ArgumentError: the text is not a whole ticket, or ctx is nil.
//   - A *TicketError, which matches ErrTicket: the ticket is of no use to this client, or of no use
//     any more.
//   - A *StoreError, or a *QuorumError: no answer came, or the server refused. The ticket is as
//     good as before.
//   - A *WaitError if ctx was over, and ErrClosed.
func (c *Client) Attach(ctx context.Context, ticket Ticket) (*Lease, error) {
	holds, err := c.held(ctx, "Client.Attach", ticket)
	if err != nil {
		return nil, err
	}
	name := holds[0].Spec.Name
	var inner held
	if len(holds) == 1 {
		inner, err = c.engine.Attach(ctx, holds[0])
	} else {
		inner, err = c.engine.AttachGroup(ctx, holds)
	}
	if err != nil {
		return nil, attachError("attach", name, err)
	}
	return &Lease{inner: inner}, nil
}

// Check tells whether the lease of a ticket is still there, in one request that prolongs nothing
// and takes nothing up. Nil says that it was there when the server answered. The errors are those
// of Attach.
func (c *Client) Check(ctx context.Context, ticket Ticket) error {
	holds, err := c.held(ctx, "Client.Check", ticket)
	if err != nil {
		return err
	}
	if err := c.engine.CheckDetached(ctx, holds); err != nil {
		return attachError("check", holds[0].Spec.Name, err)
	}
	return nil
}

// held reads the holds of a ticket of a lease, for a call.
func (c *Client) held(ctx context.Context, call string, ticket Ticket) ([]engine.Detached, error) {
	return c.decoded(ctx, call, ticketOfHold, "the whole text that Detach returned", ticket)
}

// decoded reads a ticket of a kind, for a call, and refuses one of another prefix.
func (c *Client) decoded(ctx context.Context, call string, of byte, want string, ticket Ticket) ([]engine.Detached, error) {
	if c == nil || c.engine == nil {
		return nil, zeroHandle("Client", "a client that New made")
	}
	var bad problems
	bad.check(ctx != nil, "ctx", nil, "not nil")
	holds, err := decodeTicket(of, ticket)
	bad.check(!errors.Is(err, errNoTicket), "ticket", "of "+fmt.Sprint(len(ticket))+" bytes", want)
	switch wrong := bad.err(call); {
	case wrong != nil:
		return nil, wrong
	case err != nil:
		return nil, err
	case holds[0].Prefix != c.config.Prefix:
		return nil, &TicketError{Name: holds[0].Spec.Name, Reason: TicketPrefix}
	}
	return holds, nil
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

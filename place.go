package holdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// How long a place is kept.
const (
	defaultKeep = time.Minute
	minKeep     = time.Second
	maxKeep     = 10 * time.Minute
)

// Ticket joins the queue, in one request, and returns a ticket for the place. Client.AttachWait
// waits with the ticket, in this process and in others, one after the other. It is for scripts and
// CI steps, whose caller is not one process.
//
// The place is kept for so long after the last request of a wait: from 1 s to 10 min, in whole
// milliseconds; 0 means 1 min. While no process waits with the ticket, all others pass the place,
// and it delays none of them. A place that was not asked for in that time is gone.
//
// If the mutex is free, the ticket holds it at once, for a TTL, and AttachWait takes that hold up.
// The text of the ticket gives its bearer the place, and later the lock (see Ticket).
//
// After an error there is neither a place nor a hold. If the answer was lost, a place or hold that
// the request may have left is given back in the background. The errors are those of TryLock,
// except ErrHeld. An *ArgumentError refuses WithoutRenewal, WithMinHold, WithMaxHold and
// WithPolling. A quorum has no queue; there the error is a *StoreError that says so.
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
		keep = defaultKeep
	}
	call := named(kind, lock.Spec().Name) + ".Ticket"
	var bad problems
	bad.check(validKeep(keep), "keep", keep, "0, or from 1s to 10m in whole milliseconds")
	if err := bad.err(call); err != nil {
		return "", err
	}
	place, err := lock.Place(ctx, keep)
	switch {
	case errors.Is(err, engine.ErrOwnTimes):
		bad.add("lock", "with WithoutRenewal, WithMinHold, WithMaxHold or WithPolling", "one without these options")
		return "", bad.err(call)
	case err != nil:
		_, err = leased(kind, lock, nil, err)
		return "", err
	}
	return encodeTicket(ticketOfPlace, []engine.Detached{place}), nil
}

func validKeep(keep time.Duration) bool {
	return keep >= minKeep && keep <= maxKeep && keep%time.Millisecond == 0
}

// AttachWait waits at the place of a ticket that Mutex.Ticket or a method like it returned, until
// the lock is held or ctx ends. The lease is then as any other: it is renewed, Release gives it
// back, and Detach lets it leave the process. TTL, label and all other options are those of the
// handle that made the ticket. The client must have its Config.Prefix and its servers.
//
// When ctx ends, the error is a *WaitError and the place is kept. The next AttachWait goes on
// there, from whichever process. AttachWait returns when its last request was answered, within two
// seconds. If that request finds that the lock was granted meanwhile, AttachWait returns the lease
// although ctx is over. If it has no answer, the lock may be held for up to a TTL by the ticket,
// for the next AttachWait to find. If ctx is over before the call, nothing is sent.
//
// AttachWait never joins the queue again. If an earlier process got the lock with this ticket and
// has not released it, the caller gets the same hold, with the same token and a full TTL. So two
// processes that use one ticket do not exclude each other.
//
// The ticket gets the lock only by asking on a cluster without sharded channels (Redis before 7),
// and where the server refuses PUBSUB. Callers behind it that wait all the time may then pass it.
//
// An operator may evict the ticket (Client.Evict). Then the error is a *WaitError whose Reason is
// WaitEvicted, and the place is gone.
//
// After an error nothing is attached. The other errors are:
//
//   - An *ArgumentError: the text is not a whole ticket of a place, or ctx is nil.
//   - A *TicketError, which matches ErrTicket: the ticket is of no use to this client, or of no use
//     any more. Nothing was changed.
//   - A *StoreError: a refusal that waiting does not cure, as for Mutex.Lock. The place is kept. A
//     quorum has no queue, and says so.
//   - ErrClosed: the client is closed. The place is kept, or the hold given back.
func (c *Client) AttachWait(ctx context.Context, ticket Ticket) (*Lease, error) {
	place, err := c.placed(ctx, "Client.AttachWait", ticket)
	if err != nil {
		return nil, err
	}
	inner, err := c.engine.AttachWait(ctx, place)
	if err != nil {
		return nil, attachError("attach", place.Spec.Name, err)
	}
	return &Lease{inner: inner}, nil
}

// Discard gives back what the server has of a ticket, in one request for each name. Of a ticket
// that a Ticket method made, it gives back the place, and with it the hold that the place may have
// come to. Of a ticket that Detach made, it gives back the hold, or what remains of it after
// Client.Break: so the caller says that no code works under the ticket any more. Nil says that it
// is done.
//
// The errors are those of Client.Attach. After a *TicketError the server has nothing of the ticket.
// After a *StoreError it may have some, and Discard may be called again.
func (c *Client) Discard(ctx context.Context, ticket Ticket) error {
	place, err := c.placed(ctx, "Client.Discard", ticket)
	var ofLease *ArgumentError
	switch {
	case errors.As(err, &ofLease): // if it is of any
	case err != nil:
		return err
	default:
		return attachError("discard", place.Spec.Name, c.engine.DropPlace(ctx, place))
	}
	holds, err := c.decoded(ctx, "Client.Discard", ticketOfHold, "the whole text that Detach or a Ticket method returned", ticket)
	if err != nil {
		return err
	}
	return attachError("discard", holds[0].Spec.Name, c.engine.DropDetached(ctx, holds))
}

// placed reads the place of a ticket, for a call.
func (c *Client) placed(ctx context.Context, call string, ticket Ticket) (engine.Detached, error) {
	places, err := c.decoded(ctx, call, ticketOfPlace, "the whole text that a Ticket method returned", ticket)
	if err != nil {
		return engine.Detached{}, err
	}
	return places[0], nil
}

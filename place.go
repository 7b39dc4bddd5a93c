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

// validKeep reports whether a place may be kept for so long.
func validKeep(keep time.Duration) bool {
	return keep >= minKeep && keep <= maxKeep && keep%time.Millisecond == 0
}

package hold

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// The limits of the library for a kept place.
const (
	leastKeep = time.Second
	mostKeep  = 10 * time.Minute
)

// atPlace waits at the place of the file's ticket, or of a new one that it writes there.
func (a *Acquire) atPlace(ctx context.Context, client *holdfast.Client, began time.Time,
	file ticketFile) (*holdfast.Lease, error) {
	lease, err := a.atFormerPlace(ctx, client, began)
	if !errors.Is(err, errNoPlace) {
		return lease, err
	}
	h := a.newHandle(client, holdfast.WithTTL(a.TTL))
	ticket, err := firstTry(ctx, began,
		func(ctx context.Context) (holdfast.Ticket, error) { return h.place(ctx, a.Keep) })
	if err != nil {
		return nil, err
	}
	if err = file.write(ticket); err != nil {
		return nil, errors.Join(err, client.DiscardTicket(context.WithoutCancel(ctx), ticket))
	}
	return a.attach(ctx, client, ticket, began)
}

// attach waits at a place. It asks the server at least once, however short the wait is: the place
// of a free name holds it.
func (a *Acquire) attach(ctx context.Context, client *holdfast.Client, ticket holdfast.Ticket,
	began time.Time) (*holdfast.Lease, error) {
	const least, forEver = 100 * time.Millisecond, math.MaxInt64
	for {
		limit := time.Duration(forEver)
		if a.Nonblock || a.Wait > 0 {
			limit = max(a.Wait-time.Since(began), least)
		}
		bounded, cancel := context.WithTimeout(ctx, limit)
		lease, err := client.Attach(bounded, ticket)
		cancel()
		asked := !errors.Is(err, holdfast.ErrUnavailable) || errors.As(err, new(*holdfast.StoreError))
		if asked || ctx.Err() != nil || time.Since(began) > a.Wait+firstAnswer {
			return lease, err
		}
	}
}

// errNoPlace says that the file has no place that is kept.
var errNoPlace = errors.New("no place is kept")

// atFormerPlace waits at the place of the file's ticket.
func (a *Acquire) atFormerPlace(ctx context.Context, client *holdfast.Client, began time.Time) (*holdfast.Lease,
	error) {
	if info, err := os.Stat(a.File); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, errNoPlace
	}
	ticket, err := readTicket(a.File, nil)
	if err != nil {
		return nil, err
	}
	if !ticket.IsPlace() {
		err := client.CheckTicket(ctx, ticket)
		switch {
		case err == nil:
			return nil, cli.Usagef("--ticket %s: it has the ticket of a lease that is held: release it before", a.File)
		case errors.Is(err, holdfast.ErrTicket):
			return nil, errNoPlace
		case errors.As(err, new(*holdfast.ArgumentError)):
			return nil, cli.Usagef("--ticket %s: the file is there, and has no ticket", a.File)
		}
		return nil, err
	}
	lease, err := a.attach(ctx, client, ticket, began)
	var waited *holdfast.WaitError
	switch {
	case errors.Is(err, holdfast.ErrTicket):
		return nil, errNoPlace
	case err == nil && !slices.Contains(a.Names, lease.Name()):
		err = cli.Usagef("--ticket %s: it has a place of %q", a.File, lease.Name())
		return nil, errors.Join(err, lease.Release())
	case errors.As(err, &waited) && !slices.Contains(a.Names, waited.Name):
		return nil, cli.Usagef("--ticket %s: it has a place of %q", a.File, waited.Name)
	}
	return lease, err
}

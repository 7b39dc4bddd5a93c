package hold

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// A Ticket is what acquire left, for the commands that take it.
type Ticket struct {
	cli.Connection
	File string // "-": standard input
	In   io.Reader
}

// withTicket does one thing with the ticket, and turns its error into a text and an exit code.
func (t *Ticket) withTicket(ctx context.Context, act func(*holdfast.Client, holdfast.Ticket) error) error {
	var c cli.Checklist
	c.Check(t.File != "", "--ticket FILE is needed; - is standard input")
	t.Connection.Check(&c)
	if err := c.Err(); err != nil {
		return err
	}
	ticket, err := readTicket(t.File, t.In)
	if err != nil {
		return err
	}
	client, end, err := t.NewClient(holdfast.Config{MaxTTL: cli.MostTTL})
	if err != nil {
		return err
	}
	defer end()
	switch err = act(client, ticket); {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*holdfast.ArgumentError)):
		return cli.Usagef("--ticket %s: it has no whole ticket", t.File)
	case errors.Is(err, holdfast.ErrTicket), errors.Is(err, holdfast.ErrLost):
		return cli.ExitWith(cli.ExitLost, err)
	}
	return t.Failure(err)
}

// Renew prolongs the lock by its TTL from now.
func (t *Ticket) Renew(ctx context.Context) error {
	return t.withTicket(ctx, func(client *holdfast.Client, ticket holdfast.Ticket) error {
		if ticket.IsPlace() {
			return errOnlyPlace
		}
		lease, err := client.Attach(ctx, ticket)
		if err != nil {
			return err
		}
		_, err = lease.Detach() // the ticket stays as it was
		return err
	})
}

// Release gives the lock back, or a place.
func (t *Ticket) Release(ctx context.Context) error {
	return t.withTicket(ctx, func(client *holdfast.Client, ticket holdfast.Ticket) error {
		return client.DiscardTicket(ctx, ticket)
	})
}

// Check looks whether the lock is held.
func (t *Ticket) Check(ctx context.Context) error {
	return t.withTicket(ctx, func(client *holdfast.Client, ticket holdfast.Ticket) error {
		if ticket.IsPlace() {
			return errOnlyPlace
		}
		return client.CheckTicket(ctx, ticket)
	})
}

var errOnlyPlace = cli.ExitWith(cli.ExitBusy,
	errors.New("the ticket is of a place, and holds nothing yet: holdfast acquire --keep-place waits there"))

const ticketLong = `
FILE has the ticket that holdfast acquire wrote; it is left as it is.

Exit codes: 0 done; 64 usage; 69 no server, or it cannot serve now; 76 the ticket is of no use any
more: the lock was released, has expired, or was broken; 77 the server refuses this client.`

func newTicketCommand(use, short, long string, act func(*Ticket, context.Context) error) *cobra.Command {
	t := &Ticket{}
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    long + "\n" + ticketLong,
		Example: "  holdfast " + use + " --ticket FILE",
		Args:    cli.NoArgs,
		PreRun: func(cmd *cobra.Command, _ []string) {
			cli.OutliveReaders()
			t.In = cmd.InOrStdin()
		},
		RunE: cli.UntilSignal(func(ctx context.Context) error { return act(t, ctx) }),
	}
	t.Connection.AddFlags(cmd)
	cmd.Flags().StringVar(&t.File, "ticket", "", "read the ticket from `FILE`, or from standard input if it is -")
	return cmd
}

func newRenew() *cobra.Command {
	return newTicketCommand("renew", "Prolong the lock of a ticket",
		"Prolong the lock of a ticket: it is held for another TTL from now. The exit code is 75 if the ticket is\nonly of a place in the queue.", (*Ticket).Renew)
}

func newRelease() *cobra.Command {
	return newTicketCommand("release", "Give the lock of a ticket back",
		"Give the lock of a ticket back. If the ticket is only of a place in the queue, the place is given back.", (*Ticket).Release)
}

func newCheck() *cobra.Command {
	return newTicketCommand("check", "Tell whether the lock of a ticket is held",
		"Tell whether the lock of a ticket is still held, and change nothing. When the answer arrives, it may be\nheld no more: only fencing tokens are certain. The exit code is 75 if the ticket is only of a place in\nthe queue.", (*Ticket).Check)
}

package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// waiterForm is the form of the id of a waiter.
var waiterForm = regexp.MustCompile(`^[a-z2-7]{16}$`)

// Evict takes a waiter out of a queue.
type Evict struct {
	cli.Connection
	Name   string
	Waiter string
	Out    io.Writer
}

// Run takes the waiter out.
func (e *Evict) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, e.Name)
	c.Check(waiterForm.MatchString(e.Waiter),
		"WAITER %q: it must be one that inspect shows, of 16 characters a-z and 2-7", e.Waiter)
	c.Check(!e.IsQuorum(), "a quorum has no queue: its waiters ask each for itself")
	client, end, err := e.Open(c, holdfast.Config{Label: cli.Operator()})
	if err != nil {
		return err
	}
	defer end()
	switch err := client.Evict(ctx, e.Name, e.Waiter); {
	case errors.Is(err, holdfast.ErrNotWaiting):
		return cli.Exitf(cli.ExitFailed, "no waiter %s is in the queue of %q: it holds, or has left", e.Waiter, e.Name)
	case err != nil:
		return e.Failure(err)
	}
	fmt.Fprintf(e.Out, "taken out of the queue of %s: %s\n", show.Text(e.Name), e.Waiter) // the exit code tells it too
	return nil
}

func newEvict() *cobra.Command {
	e := &Evict{}
	cmd := &cobra.Command{
		Use:                   "evict NAME WAITER",
		Short:                 "Take a waiter out of a queue",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("%s takes a NAME and a WAITER, got %s", cmd.CommandPath(), cli.CountArgs(args))
			}
			e.Name, e.Waiter = args[0], args[1]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cli.OutliveReaders()
			e.Out = cmd.OutOrStdout()
			return e.Run(cmd.Context())
		},
	}
	e.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteWaiters(&e.Connection)
	return cmd
}

package act

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// Ask asks the holders of a name to let go.
type Ask struct {
	cli.Connection
	Name string
	Out  io.Writer
}

// Run asks.
func (a *Ask) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, a.Name)
	c.Check(!a.IsQuorum(), "a quorum cannot be asked: no master knows who holds")
	client, end, err := a.Open(c, holdfast.Config{Label: cli.Operator()})
	if err != nil {
		return err
	}
	defer end()
	switch told, err := client.Ask(ctx, a.Name); {
	case errors.Is(err, holdfast.ErrNotHeld):
		return cli.Exitf(cli.ExitFailed, "nobody holds %q", a.Name)
	case err != nil:
		return a.Failure(err)
	case told == 0:
		return cli.Exitf(cli.ExitFailed, "no holder of %q listens: a run does with --on-wanted, and code that calls Lease.Wanted",
			a.Name)
	default:
		fmt.Fprintf(a.Out, "asked to let go of %s: %d\n", show.Text(a.Name), told) // the exit code tells it too
	}
	return nil
}

func newAsk() *cobra.Command {
	a := &Ask{}
	cmd := &cobra.Command{
		Use:                   "ask NAME",
		Short:                 "Ask the holders of a lock to let go",
		DisableFlagsInUseLine: true,
		Args:                  cli.OneName(&a.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cli.OutliveReaders()
			a.Out = cmd.OutOrStdout()
			return a.Run(cmd.Context())
		},
	}
	a.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteNames(&a.Connection)
	return cmd
}

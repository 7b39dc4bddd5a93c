package see

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// Why shows why a name is waited for.
type Why struct {
	cli.Connection
	cli.Output
	Name string
}

// Run looks once.
func (w *Why) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, w.Name)
	w.Output.Check(&c, whyFormats...)
	client, end, err := w.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	chain, err := client.Why(ctx, w.Name)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return w.Failure(err)
	}
	if w.Format == cli.FormatJSON {
		return w.PrintDocument(chain)
	}
	return w.Page().Chain(chain)
}

var whyFormats = []string{cli.FormatTable, cli.FormatJSON}

func newWhy() *cobra.Command {
	w := &Why{}
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Show why a name is waited for, to the root",
		Long: `Show the holders of a name, what these wait for themselves, the holders of that, and so on to the
root: the holder that waits for nothing that is known. A line says how long, and whether a hold is
late.

A waiter with WithDeadlockCheck tells what it holds. Of any other the command compares the process
and the owner with those of the holds, and says "perhaps": another goroutine of the process may
wait. All names are looked at one after another, so this is no picture of one moment.

Exit codes: 0 the server answered; 64 usage; 69 no server, or it cannot serve now; 77 the server
refuses this client: to look for names takes the permission +scan.`,
		Example:               "  holdfast why order:42\n  holdfast why -o json order:42 | jq -r '.links[].hold.label'",
		DisableFlagsInUseLine: true,
		Args:                  cli.OneName(&w.Name),
		RunE: cli.UntilSignal(func(ctx context.Context, cmd *cobra.Command) error {
			w.Out, w.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return w.Run(ctx)
		}),
	}
	w.AddNameFlags(cmd)
	w.Output.AddFlags(cmd, whyFormats...)
	return cmd
}

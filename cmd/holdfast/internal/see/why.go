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
		Use:                   "why NAME",
		Short:                 "Show why a name is waited for, to the root",
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

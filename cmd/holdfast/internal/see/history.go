package see

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// History shows who held a name, and when.
type History struct {
	cli.Connection
	cli.Output
	Name  string
	Class string
	Since time.Duration
}

// Run reads the history once. After an error, what came before it was printed.
func (h *History) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, h.Name)
	c.Check(h.Since >= 0, "--since %v: it must not be negative", h.Since)
	h.Output.Check(&c, streamFormats...)
	client, end, err := h.Open(c, holdfast.Config{Class: func(string) string { return h.Class }})
	if err != nil {
		return err
	}
	defer end()
	since := time.Time{}
	if h.Since > 0 {
		since = time.Now().Add(-h.Since)
	}
	table, entries := h.Page().Table(show.EntryColumns), 0
	for entry, failure := range client.History(ctx, h.Name, since) {
		if err = failure; err != nil {
			break
		}
		entries++
		if h.Format == cli.FormatLines {
			err = h.PrintDocument(entry)
		} else {
			err = table.Row(show.EntryRow(entry)...)
		}
		if err != nil {
			return err
		}
	}
	if unwritten := table.Flush(); unwritten != nil {
		return unwritten
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil && entries == 0 {
		h.Note("no history of %s is kept here: programs keep one with Config.History, and this command with the "+
			"variable HOLDFAST_HISTORY; --class has the class of the name, where programs have Config.Class",
			show.Text(h.Name))
	}
	return h.failure(err)
}

// failure is that of a connection. A key of another type is not the name's.
func (h *History) failure(err error) error {
	var failed *holdfast.StoreError
	if errors.As(err, &failed) && failed.Kind == holdfast.StoreForeign {
		return cli.Exitf(cli.ExitNoServer, "the history cannot be read: %w (another program has the key)", failed.Err)
	}
	return h.Failure(err)
}

func newHistory() *cobra.Command {
	h := &History{}
	cmd := &cobra.Command{
		Use:                   "history NAME",
		Short:                 "Show who held a name, and when",
		DisableFlagsInUseLine: true,
		Args:                  cli.OneName(&h.Name),
		RunE:                  cli.UntilSignal(h.Run),
	}
	h.AddNameFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&h.Class, "class", "", "the `CLASS` that Config.Class of the programs makes of the name")
	cli.DurationVar(flags, &h.Since, "since", "", 0, "only what happened since then, such as 90 (seconds) or 24h")
	h.Output.AddFlags(cmd, streamFormats...)
	return cmd
}

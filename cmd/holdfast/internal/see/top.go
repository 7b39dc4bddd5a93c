package see

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/top"
)

// Top shows locks on a full screen.
type Top struct {
	cli.Connection
	File    string // a capture to look at; empty: the server
	Capture string // where to write a capture; empty: nowhere
	In      io.Reader
	Out     io.Writer
}

// Run shows the screen until the user leaves, or ctx ends. It looks once before: a server that is
// away, or refuses this client, is an error and no screen.
func (t *Top) Run(ctx context.Context) error {
	var c cli.Checklist
	c.Check(t.File == "" || t.Capture == "",
		"--capture %q and FILE %q: a capture that is looked at is not captured again", t.Capture, t.File)
	t.Connection.Check(&c)
	if err := c.Err(); err != nil {
		return err
	}
	in, out := cli.Terminal(t.In), cli.Terminal(t.Out)
	if in == nil || out == nil || os.Getenv("TERM") == "dumb" {
		return cli.Usage(errors.New("top takes a terminal that can show a full screen: watch and ls do without"))
	}
	if t.File != "" {
		return t.replay(ctx, in, out)
	}
	client, end, err := t.NewClient(holdfast.Config{Label: cli.Operator()})
	if err != nil {
		return err
	}
	defer end()
	first, err := top.Look(ctx, client, snapshot.ByAge.Compare)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return t.Failure(err)
	}
	config := top.Config{Server: client, First: first, Title: server.Redact(t.Redis), Wrong: t.errorText}
	if t.Capture != "" {
		writer, err := snapshot.Create(t.Capture, server.Redact(t.Redis))
		if err != nil {
			return fmt.Errorf("--capture: %w", err)
		}
		defer func() { _ = writer.Close() }() // each look was written at once
		config.Recorder = writer
	}
	if err := top.Run(ctx, config, in, out); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (t *Top) replay(ctx context.Context, in, out *os.File) error {
	capture, err := snapshot.Open(t.File)
	if err != nil {
		return cli.Usage(err)
	}
	defer capture.Close()
	if err := top.Run(ctx, top.Config{Recording: capture, Title: capture.Server, Cut: capture.Cut, Wrong: t.errorText},
		in, out); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// errorText is an error as the program would print it.
func (t *Top) errorText(err error) string { return cli.Trim(t.Failure(err).Error()) }

func newTop() *cobra.Command {
	t := &Top{}
	cmd := &cobra.Command{
		Use:                   "top [FILE]",
		Short:                 "Show who holds and who waits on a full screen",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("%s takes one FILE, got %s", cmd.CommandPath(), cli.CountArgs(args))
			}
			if len(args) == 1 {
				t.File = args[0]
			}
			return nil
		},
		PreRun: func(cmd *cobra.Command, _ []string) { t.In, t.Out = cmd.InOrStdin(), cmd.OutOrStdout() },
		RunE:   cli.UntilSignal(t.Run),
	}
	t.Connection.AddFlags(cmd)
	cmd.Flags().StringVar(&t.Capture, "capture", "", "write what is seen to this new `FILE`")
	return cmd
}

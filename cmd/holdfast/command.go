package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

var errInterrupted = errors.New("interrupted")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:               "holdfast",
		Short:             "Distributed locks on Redis and Valkey",
		SilenceErrors:     true, // run prints them, once
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // ours has exit codes
		Args:              unknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w%s (see %s --help)", withoutURL(err), meant(cmd, err), cmd.CommandPath())}
	})
	root.AddCommand(newRun(), newDev(), newDemo(), newQuorum(), newCompletion(), newVersion(), newWorker(), newKeeper())
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownTopic
		}
	}
	return root
}

// knownTopic refuses help about what is no command.
func knownTopic(help *cobra.Command, args []string) error {
	if about, rest, _ := help.Root().Find(args); len(rest) > 0 {
		return unknownCommand(about, rest)
	}
	return nil
}

// unknownCommand is reached when the first argument names no command.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := nearest(cmd, args[0]); len(near) > 0 {
		text += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return &usageError{errors.New(text)}
}

// noArgs is cobra.NoArgs with a usageError.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}

// interruptible ends the context at the first signal, with errInterrupted as its cause; a second signal kills, as if
// this were not here.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

package main

import (
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/spf13/cobra"
)

// The commands that holdfast calls itself by. Both end when their standard input does; a terminal's interrupt, which
// goes to every process of the group, is for the parent to judge.
const (
	workerName = "lottery-worker"
	keeperName = "keep-server"
)

// newWorker is one process of the lottery.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer deaf()()
			return demo.Work(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newKeeper runs a server no longer than its parent lives.
func newKeeper() *cobra.Command {
	return &cobra.Command{
		Use:                keeperName + " PROGRAM ARGS...",
		Hidden:             true,
		Args:               cobra.MinimumNArgs(1),
		DisableFlagParsing: true, // they are the program's
		RunE: func(cmd *cobra.Command, args []string) error {
			defer deaf()()
			_ = server.Keep(cmd.InOrStdin(), args[0], args[1:]...) // the server's own words say more than its exit code
			return nil
		},
	}
}

// deaf swallows interrupts until it is called off. Ignoring them would be inherited, and has no way back.
func deaf() (off func()) {
	ears := make(chan os.Signal, 1)
	signal.Notify(ears, os.Interrupt)
	return func() { signal.Stop(ears) }
}

package try

import (
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/spf13/cobra"
)

// The commands that holdfast starts itself with. Each ends with its standard input.
const (
	workerName = "lottery-worker"
	keeperName = "keep-server"
)

// newWorker is one process of the demo.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer dropInterrupts()()
			return demo.Work(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newKeeper runs a server that ends with its parent.
func newKeeper() *cobra.Command {
	return &cobra.Command{
		Use:                keeperName + " PROGRAM ARGS...",
		Hidden:             true,
		Args:               cobra.MinimumNArgs(1),
		DisableFlagParsing: true, // the flags are those of PROGRAM
		RunE: func(cmd *cobra.Command, args []string) error {
			defer dropInterrupts()()
			_ = server.Keep(cmd.InOrStdin(), args[0], args[1:]...) // the server's log says more than its exit code
			return nil
		},
	}
}

// dropInterrupts drops interrupts until stop is called. The interrupt of a terminal goes to all
// processes of the group, and the parent decides what follows. signal.Ignore would be inherited by
// child processes and cannot be undone.
func dropInterrupts() (stop func()) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	return func() { signal.Stop(interrupts) }
}

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// ErrInterrupted is why a command ended that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal makes the RunE of a command whose ctx the first signal ends, with ErrInterrupted as
// its cause. The second signal has its default effect.
func UntilSignal(run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer signal.Stop(signals)
		go func() {
			select {
			case s := <-signals:
				signal.Stop(signals)
				cancel(ExitWith((&SignalError{Signal: s}).Code(), ErrInterrupted))
			case <-ctx.Done():
			}
		}()
		return run(ctx)
	}
}

// OutliveReaders lets a write to a pipe without a reader fail. Otherwise it ends this process. That
// is right for a command that only shows, and not for one that would leave a lock behind, or whose
// exit code tells more than its text. It cannot be undone.
func OutliveReaders() { Notify(make(chan os.Signal, 1), brokenPipe) }

// Notify listens to the signals of a list that this process does not ignore.
func Notify(to chan os.Signal, list []os.Signal) {
	for _, sig := range list {
		if !signal.Ignored(sig) {
			signal.Notify(to, sig)
		}
	}
}

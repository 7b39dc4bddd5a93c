package hold

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/pflag"
)

// A waitOptions says how long a command waits.
type waitOptions struct {
	Nonblock bool
	Wait     time.Duration // 0: for ever
}

func (w *waitOptions) flags(flags *pflag.FlagSet) {
	flags.BoolVarP(&w.Nonblock, "nonblock", "n", false, "do not wait")
	flags.VarP((*waitFlag)(w), "wait", "w", "the longest wait, such as 5 (seconds), 0.5 or 2m; 0 is --nonblock")
}

// check notes what is wrong with the flags.
func (w *waitOptions) check(list *cli.Checklist) {
	list.Check(w.Wait >= 0, "--wait %v: it must not be negative", w.Wait)
	list.Check(!w.Nonblock || w.Wait == 0, "--nonblock and --wait %v: only one of them can be given", w.Wait)
}

// until returns a context that ends with the wait that began at a moment.
func (w *waitOptions) until(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	if w.Wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, began.Add(w.Wait))
}

// waitFlag reads a duration into Wait and Nonblock.
type waitFlag waitOptions

// Set implements pflag.Value.
func (w *waitFlag) Set(text string) error {
	d, err := cli.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("it must not be negative")
	case d == 0:
		w.Nonblock = true
	}
	w.Wait = d
	return nil
}

// String implements pflag.Value.
func (w *waitFlag) String() string { return (*cli.Duration)(&w.Wait).String() }

// Type implements pflag.Value.
func (w *waitFlag) Type() string { return "duration" }

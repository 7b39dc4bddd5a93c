package hold

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// A Latch is a name at which processes wait until as many have counted down as were set.
type Latch struct {
	request
	TTL time.Duration
}

// withLatch does one thing with the latch, and turns its error into a text and an exit code.
func (l *Latch) withLatch(ctx context.Context, act func(*holdfast.Latch) error) error {
	var c cli.Checklist
	cli.CheckName(&c, l.Names[0])
	c.Check(l.TTL >= cli.LeastTTL && l.TTL <= cli.MostTTL, "--ttl %v: it must be %v to %v", l.TTL, cli.LeastTTL,
		cli.MostTTL)
	l.waitOptions.check(&c)
	client, end, err := l.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	err = act(client.Latch(l.Names[0], holdfast.WithTTL(l.TTL)))
	switch {
	case err == nil, errors.As(err, new(*cli.ExitError)):
	case errors.As(err, new(*holdfast.StoreError)), errors.As(err, new(*holdfast.QuorumError)):
		err = l.Failure(err)
	case errors.Is(err, holdfast.ErrNotHeld):
		err = cli.Exitf(cli.ExitLost, "latch %s is not set", l.title())
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, holdfast.ErrHeld):
		err = cli.ExitWith(cli.ExitBusy, &busyError{text: cli.Trim(err.Error())})
	case errors.As(err, new(*holdfast.WaitError)):
		err = cli.ExitWith(cli.ExitBusy, busyOf(err))
	}
	return l.reportEnd(nil, &l.choice, err)
}

// Set sets the count.
func (l *Latch) Set(ctx context.Context, count int) error {
	return l.withLatch(ctx, func(latch *holdfast.Latch) error { return latch.Set(ctx, count) })
}

// Down counts down.
func (l *Latch) Down(ctx context.Context) error {
	return l.withLatch(ctx, func(latch *holdfast.Latch) error { return latch.CountDown(ctx) })
}

// WaitOpen waits until the latch is open.
func (l *Latch) WaitOpen(ctx context.Context) error {
	return l.withLatch(ctx, func(latch *holdfast.Latch) error {
		count, err := askThenWait(ctx, &l.waitOptions, latch.Count,
			func(ctx context.Context) (int, error) { return 0, latch.Wait(ctx) },
			func(count int, err error) bool { return count > 0 || errors.Is(err, holdfast.ErrNotHeld) })
		switch {
		case l.Nonblock && errors.Is(err, holdfast.ErrNotHeld):
			return cli.ExitWith(cli.ExitBusy, &busyError{text: fmt.Sprintf("latch %s is not set", l.title())})
		case count > 0:
			return cli.ExitWith(cli.ExitBusy,
				&busyError{text: fmt.Sprintf("latch %s is set, and its count is %d", l.title(), count)})
		}
		return err
	})
}

func newLatch() *cobra.Command {
	root := &cobra.Command{
		Use:   "latch",
		Short: "Wait until as many processes have come as were set",
		Args:  cli.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newLatchSet(), newLatchDown(), newLatchWait())
	return root
}

// newLatchCommand makes a command of a latch whose first argument is its name.
func newLatchCommand(l *Latch, use, short, long string, args cobra.PositionalArgs,
	run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: args,
		PreRun: func(*cobra.Command, []string) { cli.OutliveReaders() }, RunE: cli.UntilSignal(run)}
	l.AddNameFlags(cmd)
	return cmd
}

func newLatchSet() *cobra.Command {
	l, count := namedLatch(), 0
	cmd := newLatchCommand(l, "set NAME COUNT", "Set how many must count down",
		"Set how many must count down before the latch opens; 0 opens it at once.",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("%s takes a NAME and a COUNT, got %s", cmd.CommandPath(), cli.CountArgs(args))
			}
			l.Names[0] = args[0]
			number, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil || number < 0 {
				return cli.Usagef("COUNT %q: it must be a whole number from 0 to 2147483647", args[1])
			}
			count = int(number)
			return nil
		}, func(ctx context.Context) error { return l.Set(ctx, count) })
	cli.DurationVar(cmd.Flags(), &l.TTL, "ttl", "", cli.MostTTL,
		"the latch goes away after that time without a count, and after it was open so long")
	l.quietFlag(cmd.Flags())
	return cmd
}

func newLatchDown() *cobra.Command {
	l := namedLatch()
	return newLatchCommand(l, "down NAME", "Count down", "Take one off the count. An open latch stays open.",
		cli.OneName(&l.Names[0]), l.Down)
}

func newLatchWait() *cobra.Command {
	l := namedLatch()
	cmd := newLatchCommand(l, "wait NAME", "Wait until the latch is open",
		"Wait until the latch is open, also if it is not set yet.", cli.OneName(&l.Names[0]), l.WaitOpen)
	l.waitOptions.flags(cmd.Flags())
	l.quietFlag(cmd.Flags())
	return cmd
}

func namedLatch() *Latch {
	return &Latch{TTL: cli.MostTTL, request: request{choice: choice{Names: []string{""}}}}
}

package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// askEvery is how often Wait asks the server.
const askEvery = time.Second

// Wait waits until nobody holds a name. It takes nothing.
type Wait struct{ request }

// Run asks until the name is free, ctx ends, or the wait is over. A *cli.ExitError with
// cli.ExitBusy says that the wait was too long.
func (w *Wait) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, w.Names[0])
	w.waitOptions.check(&c)
	w.logOptions.check(&c)
	w.Connection.Check(&c)
	if err := c.Err(); err != nil {
		return err
	}
	return w.withNotices(func(notices *notices) error { return w.run(ctx, notices) })
}

func (w *Wait) run(ctx context.Context, notices *notices) error {
	client, end, err := w.NewClient(holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	ask := func(ctx context.Context) (busy *busyError, err error) {
		info, err := client.Inspect(ctx, w.Names[0])
		if err == nil {
			busy, err = w.judge(info)
		}
		return busy, err
	}
	var busy *busyError
	busy, err = askThenWait(ctx, &w.waitOptions, ask, func(bounded context.Context) (*busyError, error) {
		waits := w.newRecord(eventWaiting)
		waits.setHeld(busy.held)
		waits.Text = busy.text + "; asking once a second"
		notices.tell(waits)
		return w.poll(ctx, bounded, busy, ask, notices)
	}, func(b *busyError, _ error) bool { busy = b; return b != nil })
	if err != nil {
		return w.Failure(err)
	}
	if busy == nil {
		return nil
	}
	if !w.Nonblock {
		busy = busyOf(&holdfast.WaitError{Name: w.Names[0], Held: busy.held, Waited: time.Since(began),
			Err: context.DeadlineExceeded})
	}
	return cli.ExitWith(cli.ExitBusy, busy)
}

// poll asks once a second, and once more when the bounded wait is over. A server that is away
// leaves things as they were, unless it was the last time.
func (w *Wait) poll(
	ctx, bounded context.Context, busy *busyError, ask func(context.Context) (*busyError, error), notices *notices,
) (*busyError, error) {
	line := w.statusLine()
	defer line.clear()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		line.write(fmt.Sprintf("holdfast: waiting until %s is free: %s, asking once a second", w.title(),
			keptBy(busy.held)))
		select {
		case <-tick.C:
		case <-bounded.Done():
		}
		last := bounded.Err() != nil
		found, err := ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, holdfast.ErrUnavailable) && !last:
			notices.printf("still waiting for %s: %v", w.title(), err)
		case err != nil || found == nil || last:
			return found, err
		default:
			busy = found
		}
	}
}

// judge returns what keeps others out of the name; nil: nothing. A latch or a key that is none of
// holdfast is an error.
func (w *Wait) judge(info lockinfo.Info) (*busyError, error) {
	switch info.State() {
	case lockinfo.StateFree:
		return nil, nil
	case lockinfo.StateSet, lockinfo.StateOpen:
		return nil, cli.Usagef("%s is a latch: holdfast latch wait", w.title())
	case lockinfo.StateForeign:
		return nil, cli.Exitf(cli.ExitNoServer, "the key of %s is none of holdfast: %s", w.title(), info.Foreign)
	}
	return busyOf(heldOf(info)), nil
}

func newWait() *cobra.Command {
	w := &Wait{}
	w.Names, w.Err = []string{""}, os.Stderr
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until nobody holds a name, and take nothing",
		Args:  cli.OneName(&w.Names[0]),
		RunE:  cli.UntilSignal(w.Run),
	}
	w.AddNameFlags(cmd)
	w.waitOptions.flags(cmd.Flags())
	w.logOptions.flags(cmd.Flags(), "print how long the wait was")
	return cmd
}

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
type Wait struct {
	cli.Connection
	choice
	waiting
	reporting

	Err *os.File
}

// Validate refuses bad arguments.
func (w *Wait) Validate() error {
	var c cli.Checklist
	cli.CheckName(&c, w.Names[0])
	w.waiting.check(&c)
	w.reporting.check(&c)
	w.Connection.Check(&c)
	return c.Err()
}

// Run asks until the name is free, ctx ends, or the wait is over. A *cli.ExitError with
// cli.ExitBusy says that the wait was too long.
func (w *Wait) Run(ctx context.Context) error {
	if err := w.Validate(); err != nil {
		return err
	}
	notices := newNotices(w.Err, w.reporting)
	defer notices.close()
	return w.end(notices, &w.choice, w.run(ctx, notices))
}

func (w *Wait) run(ctx context.Context, notices *notices) error {
	client, end, err := w.NewClient(holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	info, err := firstTry(ctx, began, w.ask(client))
	if err != nil {
		return w.Failure(err)
	}
	var line *statusLine
	if !w.Quiet && w.Log == logText {
		line = newStatusLine(w.Err)
	}
	defer line.clear()
	told := false
	for {
		if free, err := w.free(info); free || err != nil {
			return err
		}
		holder := holderOf(info)
		left := w.left(began)
		if left == 0 {
			text := fmt.Sprintf("waited %v for %s, %s", round(time.Since(began)), w.title(), heldBy(holder))
			if w.Nonblock {
				text = fmt.Sprintf("%s is %s", w.title(), heldBy(holder))
			}
			return cli.ExitWith(cli.ExitBusy, &busyError{holder: holder, waited: time.Since(began), text: text})
		}
		if !told {
			waits := w.about(eventWaiting)
			waits.Holder, waits.Text = holder, fmt.Sprintf("%s is %s; asking once a second", w.title(), heldBy(holder))
			notices.tell(waits)
			told = true
		}
		line.write(fmt.Sprintf("holdfast: waiting until %s is free: %s, asking once a second", w.title(), heldBy(holder)))
		if info, err = w.askAgain(ctx, client, left, info, notices); err != nil {
			return err
		}
	}
}

func (w *Wait) ask(client *holdfast.Client) func(context.Context) (lockinfo.Info, error) {
	return func(ctx context.Context) (lockinfo.Info, error) { return client.Inspect(ctx, w.Names[0]) }
}

// left is how long Wait still waits; 0: it does not.
func (w *Wait) left(began time.Time) time.Duration {
	switch {
	case w.Nonblock:
		return 0
	case w.Wait == 0:
		return askEvery
	}
	return max(w.Wait-time.Since(began), 0)
}

// askAgain asks after a second, or when the wait is over if that is sooner. A server that is away
// leaves things as they were, unless it was the last time.
func (w *Wait) askAgain(ctx context.Context, client *holdfast.Client, left time.Duration, before lockinfo.Info, notices *notices) (lockinfo.Info, error) {
	pause := time.NewTimer(min(left, askEvery))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return before, context.Cause(ctx)
	case <-pause.C:
	}
	info, err := client.Inspect(ctx, w.Names[0])
	switch {
	case err == nil:
		return info, nil
	case ctx.Err() != nil:
		return before, context.Cause(ctx)
	case errors.Is(err, holdfast.ErrUnavailable) && (w.Wait == 0 || left > askEvery):
		notices.printf("still waiting for %s: %v", w.title(), err)
		return before, nil
	}
	return before, w.Failure(err)
}

// free tells whether nothing keeps others out of the name.
func (w *Wait) free(info lockinfo.Info) (bool, error) {
	switch info.State() {
	case lockinfo.StateFree:
		return true, nil
	case lockinfo.StateSet, lockinfo.StateOpen:
		return false, cli.Usagef("%s is a latch: holdfast latch wait", w.title())
	case lockinfo.StateForeign:
		return false, cli.Exitf(cli.ExitNoServer, "the key of %s is none of holdfast: %s", w.title(), info.Foreign)
	}
	return false, nil
}

// holderOf returns the label of a holder; empty if only a rest keeps others out.
func holderOf(info lockinfo.Info) string {
	if hold, held := info.Holder(); held && !hold.Remainder() {
		return hold.Label
	}
	return ""
}

func newWait() *cobra.Command {
	w := &Wait{}
	w.Names = []string{""}
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until nobody holds a name, and take nothing",
		Long: `Wait until NAME is free, and take nothing. The server is asked once a second, so a name that is free
for less than that may be missed; another may hold it when this command has ended. To run something
alone, use holdfast run. The slots of a semaphore are free when nobody has any.

Exit codes: 0 it is free; 64 usage; 69 no server, or it cannot serve now; 75 the wait was too long;
77 the server refuses this client; 128+n signal n ended the wait.`,
		Example: `  holdfast wait -w 10m deploy && ./smoke-test.sh
  holdfast wait -nq deploy || echo "a deploy is under way"`,
		Args: cli.OneName(&w.Names[0]),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := cli.Interruptible(cmd.Context())
			defer cancel()
			w.Err = os.Stderr
			return w.Run(ctx)
		},
	}
	w.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteNames(&w.Connection)
	w.waiting.flags(cmd.Flags())
	w.reporting.flags(cmd.Flags(), "print how long the wait was")
	return cmd
}

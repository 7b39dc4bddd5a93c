// Package try has the commands that try the locks out: dev serves from memory, demo shows processes
// that share a lock. It also has the hidden commands of the processes that demo starts.
package try

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// A Demo is a lottery of several processes with one lock.
type Demo struct {
	demo.Config
	Embedded bool   // use the in-memory server even where there is a real one
	Redis    string // URL of a server to use; empty: start one
	Plain    bool   // lines of text even on a terminal
	In       io.Reader
	Out      io.Writer
}

// Validate refuses bad values, and names the flag of each. With the most of everything, a demo
// still ends within its limit.
func (d *Demo) Validate() error {
	var c cli.Checklist
	c.Check(d.Rounds >= 1 && d.Rounds <= 50, "--rounds %d: it must be 1 to 50", d.Rounds)
	c.Check(d.Workers >= 2 && d.Workers <= 32, "--workers %d: it must be 2 to 32", d.Workers)
	c.Check(d.TTL >= 500*time.Millisecond && d.TTL <= 5*time.Second, "--ttl %v: it must be 500ms to 5s", d.TTL)
	c.Check(d.Redis == "" || !d.Embedded, "--redis %s and --embedded: only one of them can be given",
		server.Redact(d.Redis))
	if d.Redis != "" {
		_, err := server.ParseURL(d.Redis)
		c.Check(err == nil, "--redis: %w", err)
	}
	return c.Err()
}

// Run plays the lottery, and returns nil if everything went as promised. Nothing that it started is
// left then.
func (d *Demo) Run(ctx context.Context) (err error) {
	if err := d.Validate(); err != nil {
		return err
	}
	// The demo ends within 30 s: some are to clean up.
	ctx, cancel := context.WithTimeoutCause(ctx, 27*time.Second, errors.New("not at its end after 27s"))
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, where, err := server.Open(ctx, d.Redis, d.Embedded, []string{self, keeperName})
	if err != nil {
		return err
	}
	c := d.Config
	c.Command, c.Prefix, c.URL = []string{self, workerName}, "holdfast-demo-"+rand.Text(), s.URL
	c.Pause, c.Resume = cli.StopSignal, cli.ContinueSignal
	c.Slack = max(c.Slack, 200*time.Millisecond) // the library's promise
	c.Draw = min(400*time.Millisecond, 8*time.Second/time.Duration(d.Rounds))
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also after an interrupt
		defer cancel()
		err = errors.Join(err, s.Forget(ctx, c.Prefix), s.Stop())
	}()
	fmt.Fprintf(d.Out, "The noon lottery: %d processes, and in each round exactly one may draw.\n", d.Workers)
	if d.NoLock {
		fmt.Fprintln(d.Out, "Today WITHOUT the lock: a process that sees no draw believes that it holds.")
	} else {
		fmt.Fprintf(d.Out, `The processes share nothing but a lock, on %s
(%s).
The holder draws if the round is not drawn. A lease lasts %v, and is renewed
while its holder lives. Each lease has a larger token than all before; they are
shown as #1, #2 and so on. The ledger of the draws refuses smaller tokens.
`, s.Name, where, d.TTL)
	}
	in, out := cli.Terminal(d.In), cli.Terminal(d.Out)
	if d.Plain || in == nil || out == nil || os.Getenv("TERM") == "dumb" {
		c.View = func(s demo.State) { fmt.Fprint(d.Out, s.Text) }
		return demo.Run(ctx, c)
	}
	return demo.RunOnScreen(ctx, c, in, out, s.Name, cli.ErrInterrupted)
}

func newDemo() *cobra.Command {
	d := &Demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes share a lock, and what happens when one dies",
		Args:  cli.NoArgs,
		PreRun: func(cmd *cobra.Command, _ []string) {
			d.In, d.Out, d.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
		},
		RunE: cli.UntilSignal(d.Run),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&d.Rounds, "rounds", 10, "rounds to draw")
	flags.IntVar(&d.Workers, "workers", 8, "processes that want to draw")
	cli.DurationVar(flags, &d.TTL, "ttl", "", 2*time.Second,
		"of the leases: the longest that a dead holder keeps the others out")
	flags.StringVar(&d.Redis, "redis", "",
		"`URL` of a server to use, such as redis://localhost:6379; the demo deletes its keys at the end")
	flags.BoolVar(&d.Embedded, "embedded", false, "use the in-memory server even where there is a real one")
	flags.BoolVar(&d.Plain, "plain", false, "print lines of text even on a terminal")
	flags.BoolVar(&d.NoLock, "without-lock", false, "draw without the lock, to show what the lock is for (ends with 1)")
	return cmd
}

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

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDemo(), newDev()}
}

// HiddenCommands returns the commands that the program starts itself with.
func HiddenCommands() []*cobra.Command { return []*cobra.Command{newKeeper(), newWorker()} }

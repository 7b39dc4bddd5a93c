package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// What a demo may be asked for: with the most of everything it still ends within its limit.
const (
	maxRounds, maxWorkers = 50, 32
	minTTL, maxTTL        = 500 * time.Millisecond, 5 * time.Second
	demoLimit             = 27 * time.Second // and some seconds to clean up: 30 in all
)

// A Demo is a lottery of several processes with one lock.
type Demo struct {
	demo.Config
	Embedded bool   // use the in-memory server even where there is a real one
	Redis    string // URL of a server to use; empty: start one
	Plain    bool   // lines of text even on a terminal

	In       io.Reader
	Out, Err io.Writer
}

// Validate refuses bad values, and names the flag of each.
func (d *Demo) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(d.Rounds >= 1 && d.Rounds <= maxRounds, "--rounds %d: it must be 1 to %d", d.Rounds, maxRounds)
	check(d.Workers >= 2 && d.Workers <= maxWorkers, "--workers %d: it must be 2 to %d", d.Workers, maxWorkers)
	check(d.TTL >= minTTL && d.TTL <= maxTTL, "--ttl %v: it must be %v to %v", d.TTL, minTTL, maxTTL)
	check(d.Redis == "" || !d.Embedded, "--redis %s and --embedded: only one of them can be given", server.Redact(d.Redis))
	if d.Redis != "" {
		_, err := server.ParseURL(d.Redis)
		check(err == nil, "--redis: %w", err)
	}
	if len(errs) > 0 {
		return &usageError{errors.Join(errs...)}
	}
	return nil
}

// Run plays the lottery, and returns nil if everything went as promised. Nothing that it started is
// left then.
func (d *Demo) Run(ctx context.Context) (err error) {
	if err := d.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("not at its end after %v", demoLimit))
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, where, err := d.server(ctx, self)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	c := d.Config
	c.Command, c.Prefix, c.URL = []string{self, workerName}, "holdfast-demo-"+rand.Text(), s.URL
	c.Stderr, c.Pause, c.Resume = d.Err, stopSignal, continueSignal
	c.Slack = max(c.Slack, 200*time.Millisecond) // the library's promise
	if c.Draw == 0 {
		c.Draw = min(400*time.Millisecond, 8*time.Second/time.Duration(d.Rounds))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also after an interrupt
		defer cancel()
		if failed := s.Forget(ctx, c.Prefix); failed != nil && d.Redis != "" {
			err = errors.Join(err, fmt.Errorf("deleting the keys %s*: %w", c.Prefix, failed))
		}
	}()
	fmt.Fprintf(d.Out, "The noon lottery: %d processes, and in each round exactly one may draw.\n", d.Workers)
	if d.NoLock {
		fmt.Fprintln(d.Out, "Today WITHOUT the lock: a process that sees no draw believes that it holds.")
	} else {
		fmt.Fprintf(d.Out, lotteryIntroduction, s.Name, where, d.TTL)
	}
	summary, broken, err := d.play(ctx, c, s.Name)
	fmt.Fprintf(d.Out, "\n%s", summary)
	switch {
	case err != nil:
		return fmt.Errorf("the lottery was not finished: %w", err)
	case broken != nil && d.NoLock:
		return fmt.Errorf("without the lock it goes wrong: %w", broken)
	case broken != nil:
		return fmt.Errorf("the lock did not keep its promise: %w", broken)
	}
	fmt.Fprintln(d.Out, "\nEvery round had exactly one draw.")
	return nil
}

const lotteryIntroduction = `The processes share nothing but a lock, on %s
(%s).
The holder draws if the round is not drawn. A lease lasts %v, and is renewed
while its holder lives. Each lease has a larger token than all before; they are
shown as #1, #2 and so on. The ledger of the draws refuses smaller tokens.
`

// play shows the lottery on a screen if there is a terminal, and else as lines of text.
func (d *Demo) play(ctx context.Context, c demo.Config, server string) (summary string, broken, err error) {
	in, isIn := d.In.(*os.File)
	out, isOut := d.Out.(*os.File)
	if d.Plain || !isIn || !isOut || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		c.View = func(s demo.State) { fmt.Fprint(d.Out, s.Text) }
		return demo.Run(ctx, c)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	show, leave := demo.Screen(in, out, c, server, func() { cancel(errInterrupted) })
	c.View = show
	defer func() { fmt.Fprint(d.Out, leave()) }()
	return demo.Run(ctx, c)
}

// server finds a server, and says which it is.
func (d *Demo) server(ctx context.Context, self string) (s *server.Server, where string, err error) {
	if d.Redis != "" {
		s, err = server.Use(ctx, d.Redis)
		return s, "at " + server.Redact(d.Redis), err
	}
	path, found := server.Find()
	if d.Embedded || !found {
		s, err = server.Embed()
		if where = "as there is no redis-server on the PATH"; d.Embedded {
			where = "as asked for"
		}
		return s, where, err
	}
	s, err = server.Start(ctx, path, []string{self, keeperName})
	if err != nil {
		return nil, "", fmt.Errorf("%w (--embedded does without)", err)
	}
	return s, fmt.Sprintf("%s, started for this demo at %s", path, s.URL), nil
}

func newDemo() *cobra.Command {
	d := &Demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes share a lock, and what happens when a holder dies",
		Long: `Watch a lottery: several processes want to draw the winner of every round, and exactly one may. In
one round the process that holds the lock is stopped until its lease is over, and draws too late.
In one round the holder takes longer than its max hold. In one it is killed with -9. Each time the
next process takes over. A terminal shows all this live.

The demo starts a redis-server or valkey-server if there is one on the PATH. Else it uses an in-
memory server inside this program. It ends with 0 only if every round had exactly one draw, and
leaves nothing behind.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(cmd.Context())
			defer cancel()
			d.In, d.Out, d.Err = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return d.Run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&d.Rounds, "rounds", 10, "rounds to draw")
	flags.IntVar(&d.Workers, "workers", 8, "processes that want to draw")
	flags.DurationVar(&d.TTL, "ttl", 2*time.Second, "of the leases: the longest that a dead holder keeps the others out")
	flags.StringVar(&d.Redis, "redis", "", "`URL` of a server to use, such as redis://localhost:6379; the demo deletes its keys at the end")
	flags.BoolVar(&d.Embedded, "embedded", false, "use the in-memory server even where there is a real one")
	flags.BoolVar(&d.Plain, "plain", false, "print lines of text even on a terminal")
	flags.BoolVar(&d.NoLock, "without-lock", false, "draw without the lock, to show what the lock is for (ends with 1)")
	return cmd
}

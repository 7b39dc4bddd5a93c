package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lottery"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/spf13/cobra"
)

// What a demo may be asked for: with the most of everything it still ends within its limit.
const (
	maxRounds  = 50
	maxWorkers = 32
	minTTL     = 500 * time.Millisecond
	maxTTL     = 5 * time.Second
	demoLimit  = 27 * time.Second // and some seconds to clean up: 30 in all
)

// A Demo is the noon lottery: several processes, one lock.
type Demo struct {
	Embedded bool          // use the in-memory server even where there is a real one
	Redis    string        // URL of a server to use; empty: start one
	Rounds   int           // at least 1
	TTL      time.Duration // of the leases, and so the longest that a dead holder keeps the others out
	Plain    bool          // lines of text even on a terminal
	Without  bool          // without the lock
	Workers  int           // at least 2

	Pace  time.Duration // how long drawing takes; 0: so that one can watch
	Slack time.Duration // what a take-over may need on top of the TTL; 0: what the library promises
	In    io.Reader
	Out   io.Writer
	Err   io.Writer // for what a process says that crashes
}

// Validate names every flag that cannot be.
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
	check(d.Redis == "" || !d.Embedded, "--redis %s and --embedded: it can only be one of them", server.Redact(d.Redis))
	if d.Redis != "" {
		_, err := server.ParseURL(d.Redis)
		check(err == nil, "--redis: %w", err)
	}
	if len(errs) > 0 {
		return &usageError{errors.Join(errs...)}
	}
	return nil
}

// Run holds the lottery and returns nil if all went as it should. Nothing that it started is left then.
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
	prefix := "holdfast-demo-" + rand.Text()
	if d.Redis != "" {
		defer func() { err = errors.Join(err, forget(ctx, s, prefix)) }()
	}
	d.introduce(s.Name, where)
	ctx, stage := d.stage(ctx, s.Name)
	hall := &lottery.Hall{
		Command: []string{self, workerName}, Draw: d.pace(), Prefix: prefix, Rounds: d.Rounds, Slack: d.Slack, Stderr: stage.errs,
		TTL: d.TTL, URL: s.URL, View: stage.view, Without: d.Without, Workers: d.Workers,
	}
	result, err := hall.Run(ctx)
	stage.leave()
	return d.conclude(result, err)
}

// server finds something to play on and says why it is that.
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

// pace leaves the same time for many rounds as for few.
func (d *Demo) pace() time.Duration {
	if d.Pace > 0 {
		return d.Pace
	}
	return min(400*time.Millisecond, 8*time.Second/time.Duration(d.Rounds))
}

// forget works although ctx is over, but then not for long.
func forget(ctx context.Context, s *server.Server, prefix string) error {
	limit := 5 * time.Second
	if ctx.Err() != nil {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := s.Forget(ctx, prefix); err != nil {
		return fmt.Errorf("deleting the keys %s*: %w", prefix, err)
	}
	return nil
}

func newDemo() *cobra.Command {
	d := &Demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes share a lock, and what happens when a holder dies",
		Long: `The noon lottery: several processes want to draw the winner of every round, and only one may. In one round the
process that holds the lock is stopped until its lease is over, and draws too late; in one it takes longer than its max
hold; in one it is killed with -9. Each time the next one takes over. On a terminal it is shown live.

It runs on a redis-server (or valkey-server) of its own if there is one on the PATH, else on an in-memory server inside
this program. It ends with 0 only if every round had exactly one draw, and leaves nothing behind.`,
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
	flags.DurationVar(&d.TTL, "ttl", 2*time.Second, "the longest that a dead holder keeps the others out")
	flags.StringVar(&d.Redis, "redis", "", "URL of a server to use, such as redis://localhost:6379; keys of its own, deleted at the end")
	flags.BoolVar(&d.Embedded, "embedded", false, "use the in-memory server even where there is a real one")
	flags.BoolVar(&d.Plain, "plain", false, "lines of text even on a terminal")
	flags.BoolVar(&d.Without, "without-lock", false, "draw without the lock: what it is for (ends with 1)")
	return cmd
}

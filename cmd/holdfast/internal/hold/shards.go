package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/shard"
)

// The limits of package shard.
const (
	mostShards = 4096
	mostShare  = 1000
)

// Shards runs a command once for each shard of a name that this process holds.
type Shards struct {
	Run
	Of    int // how many shards there are
	Share int // the weight of this process
}

// Spread takes part until a signal ends that, or a command fails. The error is as that of Run.Run.
func (s *Shards) Spread(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	var c cli.Checklist
	checkShards(&c, &s.Connection, s.Names[0])
	c.Check(s.Of != 0, "--of N is needed for a command: how many shards there are, from 1 to %d", mostShards)
	c.Check(s.Of >= 0 && s.Of <= mostShards, "--of %d: it must be 1 to %d", s.Of, mostShards)
	c.Check(s.Share >= 1 && s.Share <= mostShare, "--weight %d: it must be 1 to %d", s.Share, mostShare)
	if err := c.Err(); err != nil {
		return err
	}
	path, err := lookUp(s.Command[0])
	if err != nil {
		return err
	}
	return s.withNotices(func(notices *notices) error { return s.spread(ctx, path, notices) })
}

// checkShards notes what no set of shards can have.
func checkShards(c *cli.Checklist, connection *cli.Connection, name string) {
	most := cli.MaxText - len(fmt.Sprint("/", mostShards))
	c.Check(len(name) <= most, "NAME of %d bytes: it must have at most %d, as its shards have longer ones", len(name), most)
	c.Check(!connection.IsQuorum(), "--redis: a quorum has no queue, and so no shards; it must be one server, Sentinel or Cluster")
}

func (s *Shards) spread(ctx context.Context, path string, notices *notices) error {
	received := listen()
	defer received.stop()
	client, end, err := s.NewClient(holdfast.Config{Label: s.label(), MaxTTL: cli.MostTTL,
		Observer: &outageObserver{notices: notices}})
	if err != nil {
		return err
	}
	defer end()
	// Run would wait for a server that is away.
	if _, err := firstTry(ctx, time.Now(), func(ctx context.Context) (lockinfo.Info, error) {
		return client.Inspect(ctx, s.Names[0])
	}); err != nil {
		return s.Failure(err)
	}
	in, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	run := &shardRun{Shards: s, path: path, in: in, notices: notices, stop: cancel, running: map[*signals]struct{}{}}
	quit := make(chan struct{})
	defer close(quit)
	go run.passSignals(received, quit)
	// With a min hold, a hand-over is confirmed for the whole TTL before the command starts.
	options := shard.WithLock(holdfast.WithTTL(s.TTL), holdfast.WithMinHold(time.Millisecond))
	err = shard.New(client, s.Names[0], s.Of, shard.WithWeight(s.Share), options).Run(ctx, run.runCommand)
	cancel(nil)
	return run.endError(err)
}

// A shardRun is what one call of Spread does.
type shardRun struct {
	*Shards
	path    string
	in      *os.File // of each command: several cannot share one
	notices *notices
	stop    context.CancelCauseFunc // of the shards

	mu      sync.Mutex
	running map[*signals]struct{} // those of each command
	signal  *cli.SignalError      // that ended all; nil: it goes on
	asked   bool                  // a command ran then
	code    int                   // of the first that did not end with 0 then
}

// passSignals passes each signal to all commands. One that asks programs to end also ends the part
// that this process takes.
func (r *shardRun) passSignals(from *signals, quit <-chan struct{}) {
	for {
		select {
		case s := <-from.received:
			r.pass(s)
		case <-quit:
			return
		}
	}
}

func (r *shardRun) pass(s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(jobControl, s) && s != cli.ContinueSignal { // the commands have no terminal
		return
	}
	if r.signal == nil && (slices.Contains(endSignals, s) || s == syscall.SIGHUP && len(r.running) == 0) {
		r.signal, r.asked = &cli.SignalError{Signal: s}, len(r.running) > 0
		r.stop(r.signal)
	}
	for to := range r.running {
		select {
		case to.received <- s:
		default: // its command has many to come
		}
	}
}

// begin returns where the signals for a command come. It is nil if this process ends.
func (r *shardRun) begin() *signals {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.signal != nil {
		return nil
	}
	own := &signals{received: make(chan os.Signal, 64)}
	r.running[own] = struct{}{}
	return own
}

// end notes how a command ended.
func (r *shardRun) end(own *signals, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, own)
	if r.signal != nil && r.code == 0 {
		r.code = code
	}
}

// runCommand runs the command for a shard, until it ends or the shard is to move.
func (r *shardRun) runCommand(ctx context.Context, i int) error {
	own := r.begin()
	if own == nil {
		return nil
	}
	lease, _ := holdfast.LeaseFrom(ctx)
	run := r.Run
	run.Names = []string{lease.Name()}
	granted := run.newRecord(eventGranted)
	granted.Token, granted.Text = lease.Token(), fmt.Sprintf("got %s, token %d", run.title(), lease.Token())
	r.notices.tell(granted)
	leave := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		// The guard sees a loss itself, and a signal is passed on as it is.
		cause := context.Cause(ctx)
		if errors.Is(cause, shard.ErrMoved) {
			moved := run.newRecord(eventNotice)
			moved.Token, moved.Text = lease.Token(), run.title()+" moves to another host, which waits for it"
			r.notices.tell(moved)
		}
		if !errors.Is(cause, holdfast.ErrLost) && !errors.As(cause, new(*cli.SignalError)) {
			close(leave)
		}
	})()
	env := append(run.environ(lease), fmt.Sprint("HOLDFAST_SHARD=", i), fmt.Sprint("HOLDFAST_SHARDS=", r.Of))
	end, err := run.runGuarded(lease, child.Spec{Path: r.path, Args: r.Command, Env: env,
		Files: []*os.File{r.in, r.Out, r.Err}, Apart: true}, &guard{signals: own, notices: r.notices, leave: leave})
	r.end(own, end.code)
	if err != nil {
		return err
	}
	if end.lost != nil {
		run.tellLost(r.notices, end, "the shard goes to who is next")
		return nil
	}
	r.notices.tell(run.releaseRecord(lease, end))
	if end.code != 0 && ctx.Err() == nil {
		return cli.Exit(end.code)
	}
	return nil
}

// endError has the exit code of all.
func (r *shardRun) endError(err error) error {
	var bad *holdfast.ArgumentError
	switch {
	case errors.As(err, new(*cli.SignalError)) && r.code != 0:
		return cli.Exit(r.code)
	case errors.As(err, new(*cli.SignalError)) && r.asked:
		return nil
	case errors.As(err, new(*cli.SignalError)):
		return cli.Exitf(r.signal.Code(), "%w: this process has no part in %s any more", err, r.title())
	case errors.As(err, &bad) && bad.Problems[0].Argument == "n":
		return cli.Usagef("--of %d: it must be %s", r.Of, bad.Problems[0].Allowed)
	}
	if failed := r.Failure(err); errors.As(failed, new(*cli.ExitError)) {
		return failed
	}
	return cli.ExitWith(cli.ExitNoServer, err)
}

const shardsSynopsis = "holdfast shards NAME --of N [flags] -- CMD ARGS..."

func newShards() *cobra.Command {
	s, l := &Shards{}, &ShardList{}
	s.OnLost, s.Weight = onLostKill, 1
	cmd := &cobra.Command{
		Use:                   "shards NAME --of N [flags] [-- CMD ARGS...]",
		Short:                 "Run a command for each shard of a name, spread over all hosts",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && cmd.ArgsLenAtDash() < 0 {
				l.Name = args[0]
				return nil
			}
			return s.parseArgs(args, cmd.ArgsLenAtDash(), shardsSynopsis)
		},
	}
	s.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteNameAndCommand(&s.Connection)
	flags := cmd.Flags()
	flags.IntVar(&s.Of, "of", 0, "how many shards there are, from 1 to 4096; all must give the same `N`")
	l.Output.AddFlags(cmd, cli.ListFormats...)
	ofBoth := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) { ofBoth[f.Name] = true })
	flags.IntVar(&s.Share, "weight", 1, "this process has a share so many times as large as that of one with 1")
	s.holdFlags(cmd)
	s.logFlags(flags, "print each shard that comes, moves away or was given back, and how long it was held")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.Command != nil {
			if flags.Changed("output") {
				return cli.Usagef("--output and a command: only one of them can be given")
			}
			s.Out, s.Err = os.Stdout, os.Stderr
			return s.Spread(cmd.Context())
		}
		var c cli.Checklist
		flags.Visit(func(f *pflag.Flag) {
			c.Check(ofBoth[f.Name], "--%s: it needs a command: %s", f.Name, shardsSynopsis)
		})
		if err := c.Err(); err != nil {
			return err
		}
		l.Connection, l.Of = s.Connection, s.Of
		return cli.UntilSignal(l.Run)(cmd, nil)
	}
	return cmd
}

package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// The values of --on-lost: how a command is ended when its lock is lost.
const (
	onLostKill   = "kill"   // TERM while there is trust left, then KILL
	onLostTerm   = "term"   // TERM only
	onLostIgnore = "ignore" // nothing
)

// Run runs a command under a lock.
type Run struct {
	request
	Command  []string // the program and its arguments
	Conflict int      // exit code when the lock is held by another
	Grace    time.Duration
	Label    string // empty: the command, host and process
	MaxHold  time.Duration
	MinHold  time.Duration
	OnLost   string
	OnWanted string        // the signal for the command when others want the lock; empty: none
	Replace  time.Duration // how long the holder has to let go before its hold is broken; 0: it is left alone
	Owner    string        // empty: a new one
	TTL      time.Duration
	In, Out  *os.File

	// beforeRelease is called when the command has ended, while the lock is held, which it may
	// release; it may be nil.
	beforeRelease func(outcome)
}

// Run holds the lock while the command runs. A *cli.ExitError has the command's exit code, or the
// reason why the command did not run or had to end. When Run returns, the command has ended and the
// lock is released. If the server could not be asked, the lock is free after its TTL.
func (r *Run) Run(ctx context.Context) error {
	if err := r.Validate(); err != nil {
		return err
	}
	path, err := lookUp(r.Command[0])
	if err != nil {
		return err
	}
	return r.withNotices(func(notices *notices) error { return r.run(ctx, path, notices) })
}

func (r *Run) run(ctx context.Context, path string, notices *notices) error {
	signals := listen()
	defer signals.stop()
	client, end, err := r.NewClient(holdfast.Config{Label: r.label(), MaxTTL: cli.MostTTL,
		Observer: &outageObserver{notices: notices}})
	if err != nil {
		return err
	}
	defer end()

	began := time.Now()
	lease, err := r.acquire(ctx, client, signals, notices)
	if err != nil {
		return r.refusal(err)
	}
	notices.tell(r.grantRecord(lease, began))
	return r.runCommand(lease, path, signals, notices)
}

// runCommand runs the command, waits for its end, and releases the lock.
func (r *Run) runCommand(lease *holdfast.Lease, path string, signals *signals, notices *notices) error {
	end, err := r.supervise(lease, path, signals, notices)
	if err != nil {
		return err
	}
	return end.err()
}

// An outcome is how a command ended that ran under a lock.
type outcome struct {
	code  int
	held  time.Duration
	lost  error // how the lock was lost, or nearly
	asked bool  // a signal that asks programs to end was passed on
}

// err has the exit code for an end.
func (e outcome) err() error {
	switch {
	case e.lost != nil:
		return cli.Exitf(cli.ExitLost, "%w; the command ended with %d", e.lost, e.code)
	case e.code != 0:
		return cli.Exit(e.code)
	}
	return nil
}

// supervise runs the command, waits for its end, and releases the lock. The error says that the
// command could not be started.
func (r *Run) supervise(lease *holdfast.Lease, path string, signals *signals, notices *notices) (outcome, error) {
	g := &guard{signals: signals, notices: notices}
	if r.OnWanted != "" {
		g.onWanted, g.wanted = wantedSignals[r.OnWanted], lease.Wanted()
	}
	if r.MaxHold > 0 {
		g.maxEnd = time.Now().Add(r.MaxHold)
	}
	end, err := r.runGuarded(lease, child.Spec{Path: path, Args: r.Command, Env: r.environ(lease),
		Files: []*os.File{r.In, r.Out, r.Err}}, g)
	if err != nil {
		_ = lease.Release()
		return outcome{}, err
	}
	if r.beforeRelease != nil {
		r.beforeRelease(end)
	}
	err = lease.Release()
	switch {
	case errors.Is(err, holdfast.ErrNotHeld): // it is released already
		err = nil
	case end.lost == nil && errors.Is(err, holdfast.ErrLost):
		end.lost = err
	}
	notices.tell(r.releaseRecord(lease, end))
	if end.lost == nil && err != nil {
		notices.printf("giving %s back: %v; it is free in %v at the latest", r.title(), err, r.ttl())
	}
	return end, nil
}

// runGuarded starts a command, and waits for its end. The guard has what is special to it.
func (r *Run) runGuarded(lease *holdfast.Lease, spec child.Spec, g *guard) (outcome, error) {
	began := time.Now()
	c, err := child.Start(spec)
	if err != nil {
		return outcome{}, cli.Exitf(cli.ExitNotRunnable, "cannot run %s: %w", r.Command[0], err)
	}
	g.child, g.lease, g.name, g.onLost = c, lease, r.title(), r.OnLost
	g.ttl, g.early = r.ttl(), min(r.Grace, r.ttl()/3)
	lost := g.superviseChild()
	return outcome{code: c.Code(), held: time.Since(began), lost: lost, asked: g.asked}, nil
}

// releaseRecord tells that a lease was given back when its command had ended.
func (r *Run) releaseRecord(lease *holdfast.Lease, end outcome) record {
	released := r.newRecord(eventReleased)
	released.Token, released.Held, released.Code = lease.Token(), secondsOf(end.held), &end.code
	released.Text = fmt.Sprintf("held %s for %v; the command ended with %d", r.title(), roundTime(end.held), end.code)
	return released
}

// tellLost tells that a command ended for the sake of a lock that was lost, and what is next.
func (r *Run) tellLost(notices *notices, end outcome, next string) {
	text := fmt.Sprintf("%v; the command ended with %d; %s", end.lost, end.code, next)
	if !notices.json {
		notices.printf("%s", text)
		return
	}
	lost := r.newRecord(eventLost)
	lost.Held, lost.Code, lost.Text = secondsOf(end.held), &end.code, cli.Trim(text)
	notices.tell(lost)
}

// ttl is the time that the lock outlives this process.
func (r *Run) ttl() time.Duration {
	if r.MaxHold > 0 {
		return min(r.TTL, r.MaxHold)
	}
	return r.TTL
}

// label names the command and not holdfast.
func (r *Run) label() string {
	if r.Label != "" {
		return r.Label
	}
	return fmt.Sprintf("%.200s@%.200s/%d", filepath.Base(r.Command[0]), cli.HostName(), os.Getpid())
}

// environ is the environment of the command, without the variables of an outer run.
func (r *Run) environ(lease *holdfast.Lease) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "HOLDFAST_NAME", "HOLDFAST_TOKEN", "HOLDFAST_TOKENS", "HOLDFAST_OWNER", "HOLDFAST_TTL", "HOLDFAST_REDIS",
			"HOLDFAST_UNDER", "HOLDFAST_SHARD", "HOLDFAST_SHARDS":
		default:
			env = append(env, v)
		}
	}
	tokens, _ := json.Marshal(lease.Tokens())
	under, _ := json.Marshal(tokensWithin(lease))
	return append(env,
		"HOLDFAST_NAME="+lease.Name(),
		fmt.Sprintf("HOLDFAST_TOKEN=%d", lease.Token()),
		"HOLDFAST_TOKENS="+string(tokens),
		"HOLDFAST_OWNER="+lease.Owner(),
		"HOLDFAST_TTL="+r.ttl().String(),
		"HOLDFAST_UNDER="+string(under),
		"HOLDFAST_REDIS="+server.WithoutPasswords(r.Redis))
}

// roundTime makes a duration readable.
func roundTime(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

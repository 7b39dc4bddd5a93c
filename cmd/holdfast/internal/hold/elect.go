package hold

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// The pauses of an Elect between the end of its command and the next campaign: the first, the
// longest, and how long a command runs that begins anew with the first.
const (
	firstPause = time.Second
	mostPause  = time.Minute
	longRun    = time.Minute
)

// Elect keeps a command running on one of the hosts that campaign for a name.
type Elect struct {
	Run
	Successor string // who leads next when this process is told to stop; empty: the first in the queue
}

// Lead campaigns, runs the command while it leads, and campaigns again, until a signal ends the
// command or the campaign. The error is as that of Run.
func (e *Elect) Lead(ctx context.Context) error {
	if err := e.Validate(); err != nil {
		return err
	}
	path, err := lookUp(e.Command[0])
	if err != nil {
		return err
	}
	return e.withNotices(func(notices *notices) error { return e.lead(ctx, path, notices) })
}

func (e *Elect) lead(ctx context.Context, path string, notices *notices) error {
	signals := listen()
	defer signals.stop()
	client, end, err := e.NewClient(holdfast.Config{Label: e.label(), MaxTTL: cli.MostTTL,
		Observer: &outageObserver{notices: notices}})
	if err != nil {
		return err
	}
	defer end()
	// With a min hold, a hand-over is confirmed for the whole TTL before the command starts.
	election := client.Election(e.Names[0], holdfast.WithTTL(e.TTL), holdfast.WithMinHold(time.Millisecond))
	var pause pauses
	for first := true; ; first = false {
		began := time.Now()
		lease, err := e.campaign(ctx, client, election, first, signals, notices)
		if err != nil {
			return e.electionError(err)
		}
		notices.tell(e.grantRecord(lease, began))
		e.beforeRelease = func(end outcome) { e.handOver(ctx, election, end, notices) }
		end, err := e.supervise(lease, path, signals, notices)
		switch {
		case err != nil:
			return err
		case end.isFinal() && end.code == 0:
			return nil
		case end.isFinal():
			return cli.Exit(end.code)
		case end.lost != nil:
			e.tellLost(notices, end, "campaigning again")
			continue
		}
		wait := pause.next(end.held)
		notices.printf("the command ended with %d after %v; the next campaign is in %v", end.code, roundTime(end.held), wait)
		if err := sleep(ctx, wait, signals); err != nil {
			return e.electionError(err)
		}
	}
}

// handOver gives the lead to the successor, if this process was told to stop. Without one that
// shows life the lead goes to the first in the queue, as after each release.
func (e *Elect) handOver(ctx context.Context, election *holdfast.Election, end outcome, notices *notices) {
	if e.Successor == "" || !end.isFinal() || end.lost != nil {
		return
	}
	if err := election.Transfer(ctx, e.Successor); err != nil {
		notices.printf("the lead goes to the first in the queue: %s", cli.Trim(err.Error()))
	}
}

// electionError turns the reason why this process does not lead into a text and an exit code.
func (e *Elect) electionError(err error) error {
	var signal *cli.SignalError
	if errors.As(err, &signal) {
		return cli.Exitf(signal.Code(), "%w: this process does not lead %s any more", err, e.title())
	}
	return e.refusal(err)
}

// isFinal reports whether nobody wants the command to run again: it was asked to end, or ended by a
// signal of a terminal, which reaches the command and not this process.
func (e outcome) isFinal() bool {
	switch e.code {
	case cli.ExitSignal + int(syscall.SIGINT), cli.ExitSignal + int(syscall.SIGQUIT),
		cli.ExitSignal + int(syscall.SIGHUP):
		return true
	}
	return e.asked
}

// campaign waits until this process leads. Only the first time, a server that is away is an error.
func (e *Elect) campaign(
	ctx context.Context, client *holdfast.Client, election *holdfast.Election, first bool, signals *signals,
	notices *notices,
) (*holdfast.Lease, error) {
	h := handle{try: election.TryCampaign, lock: election.Campaign}
	return signals.interrupt(ctx, func(ctx context.Context) (*holdfast.Lease, error) {
		return e.lease(ctx, client, h, !first, notices, e.statusLine())
	})
}

// pauses are the times between the end of a command and the next campaign.
type pauses struct{ last time.Duration }

// next doubles the pause after each run, up to the longest. A long run begins anew.
func (p *pauses) next(held time.Duration) time.Duration {
	if p.last = min(2*p.last, mostPause); p.last == 0 || held >= longRun {
		p.last = firstPause
	}
	return p.last
}

// sleep waits until a signal ends that, which is a *cli.SignalError.
func sleep(ctx context.Context, d time.Duration, signals *signals) error {
	ctx, stop := signals.cancelOnSignal(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return stop()
}

func newElect() *cobra.Command {
	e := &Elect{}
	cmd := &cobra.Command{
		Use:                   "elect [flags] NAME -- CMD ARGS...",
		Short:                 "Keep a command running on one host of many",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return e.parseArgs(args, cmd.ArgsLenAtDash(), "holdfast elect [flags] NAME -- CMD ARGS...")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			e.In, e.Out, e.Err = os.Stdin, os.Stdout, os.Stderr
			return e.Lead(cmd.Context())
		},
	}
	e.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteNameAndCommand(&e.Connection)
	e.Weight = 1
	flags := cmd.Flags()
	flags.StringVar(&e.Successor, "successor", "",
		"`LABEL` or HOST/PID of the candidate that leads next when this process is told to stop (default: the first in the queue)")
	e.superviseFlags(cmd)
	e.logOptions.flags(flags, "print how long the wait for the lock was, and how long it was held")
	return cmd
}

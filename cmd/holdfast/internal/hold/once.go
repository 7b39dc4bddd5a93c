package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/flight"
)

const (
	maxOutput = 1 << 20 // bytes that others get
	mostFresh = 365 * 24 * time.Hour
)

// Once runs a command on one host, and gives what it wrote to the others.
type Once struct {
	Run
	Fresh        time.Duration // how long that is used
	Result       string        // the file that the command writes; empty: its standard output
	ShareFailure bool
}

// Share runs the command, unless another host ran it lately or does so now: then it waits, and
// passes on what that one wrote. The error is as that of Run.Run.
func (o *Once) Share(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	var c cli.Checklist
	c.Check(o.Fresh >= time.Millisecond && o.Fresh <= mostFresh,
		"--fresh %v: it must be given, from 1ms to %v", o.Fresh, mostFresh)
	c.Check(!o.IsQuorum(), "--redis: a quorum keeps no results; it must be one server, Sentinel or Cluster")
	if err := c.Err(); err != nil {
		return err
	}
	path, err := lookUp(o.Command[0])
	if err != nil {
		return err
	}
	return o.withNotices(func(notices *notices) error { return o.share(ctx, path, notices) })
}

func (o *Once) share(ctx context.Context, path string, notices *notices) error {
	signals := listen()
	defer signals.stop()
	waits := &waitObserver{tell: notices.tell, choice: &o.choice}
	client, end, err := o.NewClient(holdfast.Config{Label: o.label(), MaxTTL: cli.MostTTL,
		Observer: holdfast.Observers(&outageObserver{notices: notices}, waits)})
	if err != nil {
		return err
	}
	defer end()
	rdb, err := server.Connect(o.Redis, o.TLS)
	if err != nil {
		return cli.Usagef("--redis or REDIS_URL: %w", err)
	}
	defer rdb.Close()
	outputs := &outputStore{rdb, o.Prefix, o.Names[0]}

	began := time.Now()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	endWait := o.boundWait(ctx, cancel, signals, waits)
	var led bool  // the command ran here
	var own error // how that ended
	read := func(ctx context.Context) (output, flight.State, error) {
		kept, err := outputs.get(ctx, o.Fresh)
		if err != nil || kept == nil || kept.code != 0 && !o.ShareFailure {
			return output{}, flight.Stale, err
		}
		return *kept, flight.Fresh, nil
	}
	compute := func(ctx context.Context, _ int64) (output, error) {
		if err := endWait(); err != nil {
			return output{}, err
		}
		lease, _ := holdfast.LeaseFrom(ctx)
		notices.tell(o.grantRecord(lease, began))
		led, own = true, o.runShared(lease, path, outputs, signals, notices)
		cancel(nil) // after a loss it does not run again
		return output{}, own
	}
	// With a min hold, a hand-over is confirmed for the whole TTL before the command starts.
	options := []holdfast.Option{holdfast.WithTTL(o.TTL), holdfast.WithMinHold(time.Millisecond)}
	if around := tokensAround(); len(around) > 0 {
		options = append(options, holdfast.WithUnder(around))
	}
	got, err := flight.Do(ctx, client, o.Names[0], read, compute, flight.WithLock(options...))
	ended := endWait()
	switch {
	case led:
		return own
	case ended != nil:
		return o.refusal(ended)
	case err != nil:
		return o.refusal(err)
	case got.code != 0:
		notices.printf("the command ended with %d on another host, %v ago", got.code, roundTime(got.age))
		return cli.Exit(got.code)
	}
	return o.write(got.text)
}

// boundWait ends ctx with the first signal, and when --wait is over. The function that it returns
// ends that, and says what came.
func (o *Once) boundWait(ctx context.Context, cancel context.CancelCauseFunc, signals *signals, waits *waitObserver) (
	end func() error) {
	waiting, stop := signals.cancelOnSignal(ctx)
	unlink := context.AfterFunc(waiting, func() { cancel(context.Cause(waiting)) })
	over := &holdfast.WaitError{Name: o.Names[0], Waited: o.Wait, Reason: holdfast.WaitContext,
		Err: context.DeadlineExceeded}
	var timer *time.Timer
	if o.Wait > 0 {
		timer = time.AfterFunc(o.Wait, func() { cancel(over) })
	}
	return sync.OnceValue(func() error {
		unlink()
		late := timer != nil && !timer.Stop()
		if err := stop(); err != nil || !late {
			return err
		}
		ended := *over // which those that still wait may read
		if ended.Held = waits.holder.Load(); ended.Held != nil {
			ended.Holder, ended.Token, ended.Since = ended.Held.Holder, ended.Held.Token, ended.Held.Since
		}
		return &ended
	})
}

// runShared runs the command under a lease, and keeps what it wrote.
func (o *Once) runShared(lease *holdfast.Lease, path string, outputs *outputStore, signals *signals, notices *notices) (
	err error) {
	written := o.Result
	if written == "" {
		f, err := os.CreateTemp("", "holdfast-once-")
		if err != nil {
			return fmt.Errorf("no place for what the command writes: %w", err)
		}
		out := o.Out
		o.Out, written = f, f.Name()
		defer func() {
			o.Out = out
			if _, err := f.Seek(0, io.SeekStart); err == nil {
				_, _ = io.Copy(out, f)
			}
			_ = f.Close()
			_ = os.Remove(written)
		}()
	}
	var kept error
	o.beforeRelease = func(end outcome) { kept = o.keep(lease, end, written, outputs) }
	end, err := o.supervise(lease, path, signals, notices)
	if err != nil {
		return err
	}
	if err := end.err(); err != nil {
		return err
	}
	return kept
}

// keep gives the others what the command wrote or, if it failed and they want that, its exit code.
func (o *Once) keep(lease *holdfast.Lease, end outcome, written string, outputs *outputStore) error {
	out := output{code: end.code}
	switch {
	case end.lost != nil, end.code != 0 && (!o.ShareFailure || end.asked):
		return nil
	case end.code == 0:
		f, err := os.Open(written)
		if err == nil {
			defer f.Close()
			out.text, err = io.ReadAll(io.LimitReader(f, maxOutput+1))
		}
		if err != nil {
			return cli.Exitf(cli.ExitNoOutput, "the command ended with 0, and its result cannot be read: %w", err)
		}
		if len(out.text) > maxOutput {
			return cli.Exitf(cli.ExitNoOutput, "the command ended with 0, and its result has more than %d bytes: others run it again",
				maxOutput)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), firstAnswer)
	defer cancel()
	if err := outputs.keep(ctx, lease.Token(), out, o.Fresh); err != nil {
		return o.Failure(fmt.Errorf("the command ended with %d, and others run it again: %w", end.code, err))
	}
	return nil
}

// write passes on what the command wrote on another host. The file is there whole, or as it was.
func (o *Once) write(text []byte) error {
	if o.Result == "" {
		_, err := o.Out.Write(text)
		return err
	}
	part := fmt.Sprintf("%s.%d", o.Result, os.Getpid())
	err := os.WriteFile(part, text, 0o666)
	if err == nil {
		err = os.Rename(part, o.Result)
	}
	if err != nil {
		_ = os.Remove(part)
		return fmt.Errorf("the result of another host cannot be written: %w", err)
	}
	return nil
}

// A waitObserver tells that another host runs the command.
type waitObserver struct {
	tell   func(record)
	choice *choice
	holder atomic.Pointer[holdfast.HeldError]
}

// Observe implements holdfast.Observer.
func (o *waitObserver) Observe(e holdfast.Event) {
	var held *holdfast.HeldError
	if e.Kind == holdfast.EventRefused && errors.As(e.Err, &held) {
		o.holder.Store(held)
		o.tell(o.choice.waitRecord(held))
	}
}

func newOnce() *cobra.Command {
	o := &Once{}
	o.OnLost, o.Weight = onLostKill, 1
	cmd := &cobra.Command{
		Use:                   "once [flags] NAME -- CMD ARGS...",
		Short:                 "Run a command on one host, and give its result to all",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return o.parseArgs(args, cmd.ArgsLenAtDash(), "holdfast once [flags] NAME -- CMD ARGS...")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.In, o.Out, o.Err = os.Stdin, os.Stdout, os.Stderr
			return o.Share(cmd.Context())
		},
	}
	o.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteNameAndCommand(&o.Connection)
	flags := cmd.Flags()
	cli.DurationVar(flags, &o.Fresh, "fresh", "", 0, "how long a result is used; it must be given")
	flags.StringVar(&o.Result, "result", "", "`FILE` that CMD writes, and that the other hosts get (default: standard output)")
	flags.BoolVar(&o.ShareFailure, "share-failure", false, "if CMD fails, end with its exit code on all hosts")
	cli.DurationVar(flags, &o.Wait, "wait", "w", 0, "the longest wait (default: for ever)")
	flags.IntVarP(&o.Conflict, "conflict-exit-code", "E", cli.ExitBusy, "exit code if the wait was too long")
	o.holdFlags(cmd)
	o.logOptions.flags(flags, "print how long the wait was, and how long CMD ran")
	return cmd
}

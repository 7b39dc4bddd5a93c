package hold

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A request says what a command wants, how long it waits for that, and what it prints meanwhile.
type request struct {
	cli.Connection
	choice
	waitOptions
	logOptions
	Err *os.File // for notices
}

// withNotices runs a command, and reports how it ended.
func (r *request) withNotices(run func(*notices) error) error {
	notices := newNotices(r.Err, r.logOptions)
	defer notices.close()
	return r.reportEnd(notices, &r.choice, run(notices))
}

// firstAnswer is how long a server may take for its first answer, however short the TTL: to connect
// takes time.
const firstAnswer = 3 * time.Second

// askThenWait asks once, and waits if the answer is that the command must wait. So a server that is
// away or refuses this client causes an error and no endless wait.
func askThenWait[T any](
	ctx context.Context, w *waitOptions, ask, wait func(context.Context) (T, error), mustWait func(T, error) bool,
) (T, error) {
	began := time.Now()
	got, err := firstTry(ctx, began, ask)
	if w.Nonblock || !mustWait(got, err) {
		return got, err
	}
	ctx, cancel := w.until(ctx, began)
	defer cancel()
	return wait(ctx)
}

// firstTry asks again while a server may only have been too slow for a short TTL.
func firstTry[T any](ctx context.Context, began time.Time, try func(context.Context) (T, error)) (T, error) {
	got, err := try(ctx)
	for isUnanswered(err) && ctx.Err() == nil && time.Since(began) < firstAnswer {
		got, err = try(ctx)
	}
	return got, err
}

// isUnanswered reports whether a server, or one of a quorum, may only have been too slow for a
// short TTL.
func isUnanswered(err error) bool {
	var (
		none   *holdfast.QuorumError
		failed *holdfast.StoreError
		late   net.Error
	)
	if errors.As(err, &none) {
		return slices.ContainsFunc(none.Masters, func(n lockinfo.Master) bool { return isUnanswered(n.Err) })
	}
	return errors.As(err, &failed) && (failed.Kind == holdfast.StoreNoAnswer ||
		(failed.Kind == holdfast.StoreUnreachable || failed.Kind == holdfast.StoreNotSent) &&
			errors.As(failed.Err, &late) &&
			late.Timeout())
}

// lease waits for a lease. It tells the notices that another holds, and shows it in a status line.
// With patience it also waits for a server that is away.
func (r *request) lease(
	ctx context.Context, client *holdfast.Client, h handle, patience bool, notices *notices, status *statusLine,
) (*holdfast.Lease, error) {
	var held *holdfast.HeldError
	began := time.Now()
	mustWait := func(_ *holdfast.Lease, err error) bool {
		return errors.As(err, &held) || patience && errors.Is(err, holdfast.ErrUnavailable)
	}
	return askThenWait(ctx, &r.waitOptions, h.try, func(ctx context.Context) (*holdfast.Lease, error) {
		if held != nil {
			notices.tell(r.waitRecord(held))
			if around := aroundText(held); around != "" {
				notices.printf("%s", around)
			}
			defer status.show(client, held)()
		}
		late := ctx.Err() != nil // so the server is not asked again, and what it said first is the last answer
		lease, err := h.lock(ctx)
		if over := (*holdfast.WaitError)(nil); late && errors.As(err, &over) {
			over.Held, over.Waited = held, time.Since(began)
		}
		return lease, err
	}, mustWait)
}

// statusLine returns the line on a terminal; nil if there is none, or if it was not wanted.
func (r *request) statusLine() *statusLine {
	if r.Quiet || r.Log != logText || cli.Terminal(r.Err) == nil {
		return nil
	}
	return &statusLine{r.Err}
}

// A waitOptions says how long a command waits.
type waitOptions struct {
	Nonblock bool
	Wait     time.Duration // 0: for ever
}

func (w *waitOptions) flags(flags *pflag.FlagSet) {
	flags.BoolVarP(&w.Nonblock, "nonblock", "n", false, "do not wait")
	flags.VarP((*waitFlag)(w), "wait", "w", "the longest wait, such as 5 (seconds), 0.5 or 2m; 0 is --nonblock")
}

// check notes what is wrong with the flags.
func (w *waitOptions) check(list *cli.Checklist) {
	list.Check(w.Wait >= 0, "--wait %v: it must not be negative", w.Wait)
	list.Check(!w.Nonblock || w.Wait == 0, "--nonblock and --wait %v: only one of them can be given", w.Wait)
}

// until returns a context that ends with the wait that began at a moment.
func (w *waitOptions) until(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	if w.Wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, began.Add(w.Wait))
}

// waitFlag reads a duration into Wait and Nonblock.
type waitFlag waitOptions

// Set implements pflag.Value.
func (w *waitFlag) Set(text string) error {
	d, err := cli.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("it must not be negative")
	case d == 0:
		w.Nonblock = true
	}
	w.Wait = d
	return nil
}

// String implements pflag.Value.
func (w *waitFlag) String() string { return (*cli.Duration)(&w.Wait).String() }

// Type implements pflag.Value.
func (w *waitFlag) Type() string { return "duration" }

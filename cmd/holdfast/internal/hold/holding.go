package hold

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// acquire waits for the lock, until a signal ends that.
func (r *Run) acquire(
	ctx context.Context, client *holdfast.Client, signals *signals, notices *notices,
) (*holdfast.Lease, error) {
	owner := r.Owner
	if owner == "" {
		owner = rand.Text() // for nested runs
	}
	// With a min hold, TryLock and Lock confirm a hand-over for the whole TTL. Without, it is
	// trusted for half a second at first. A command whose start makes the machine busy would soon
	// be killed.
	atLeast := holdfast.WithMinHold(max(r.MinHold, time.Millisecond))
	options := []holdfast.Option{holdfast.WithTTL(r.TTL), atLeast}
	if r.Slots == 0 {
		options = append(options, holdfast.WithOwner(owner))
		if around := tokensAround(); len(around) > 0 {
			options = append(options, holdfast.WithUnder(around))
		}
	}
	if r.MaxHold > 0 {
		options = append(options, holdfast.WithMaxHold(r.MaxHold))
	}
	if r.OnWanted != "" {
		options = append(options, holdfast.WithWanted())
	}
	h := r.thatReplaces(r.newHandle(client, options...), client, notices)
	return signals.interrupt(ctx, func(ctx context.Context) (*holdfast.Lease, error) {
		return r.lease(ctx, client, h, false, notices, r.statusLine())
	})
}

// refusal turns the reason why there is no lock into a text and an exit code.
func (r *Run) refusal(err error) error {
	var signal *cli.SignalError
	if errors.As(err, &signal) {
		return cli.Exitf(signal.Code(), "%w before %s was held; nothing was run", err, r.title())
	}
	return r.failureOrBusy(err, r.Conflict)
}

// failureOrBusy is the failure of a server, or says that another holds the lock, which has a code.
func (r *request) failureOrBusy(err error, code int) error {
	failed := r.Failure(err)
	if busy := busyOf(err); busy != nil && !errors.As(failed, new(*cli.ExitError)) {
		return cli.ExitWith(code, busy)
	}
	return failed
}

// busyOf says that another holds the lock, or that the wait was too long. It is nil for any other
// error.
func busyOf(err error) *busyError {
	var (
		held   *holdfast.HeldError
		waited *holdfast.WaitError
		busy   busyError
	)
	switch {
	case errors.As(err, &waited):
		text := strings.TrimSuffix(cli.Trim(waited.Error()), ": "+context.DeadlineExceeded.Error())
		busy = busyError{text: text, held: waited.Held, waited: waited.Waited}
	case errors.As(err, &held):
		busy = busyError{text: cli.Trim(held.Error()), held: held}
	default:
		return nil
	}
	if around := aroundText(busy.held); around != "" {
		busy.text += "; " + around
	}
	return &busy
}

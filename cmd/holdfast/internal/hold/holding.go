package hold

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// firstAnswer is how long a server may take for its first answer, however short the TTL: to connect
// takes time.
const firstAnswer = 3 * time.Second

// acquire asks once before it waits. So a server that is away or refuses this client causes an
// error and no endless wait. A signal ends the wait.
func (r *Run) acquire(ctx context.Context, client *holdfast.Client, signals *signals, notices *notices) (*holdfast.Lease, error) {
	ctx, stop := signals.cancelOnSignal(ctx)
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
	}
	if r.MaxHold > 0 {
		options = append(options, holdfast.WithMaxHold(r.MaxHold))
	}
	began := time.Now()
	h := r.handle(client, options...)
	lease, err := firstTry(ctx, began, h.try)
	var held *holdfast.HeldError
	if errors.As(err, &held) && !r.Nonblock {
		notices.tell(r.waits(held))
		lease, err = r.wait(ctx, began, client, h, held)
	}
	if err := stop(); err != nil {
		if lease != nil {
			_ = lease.Release()
		}
		return nil, err
	}
	return lease, err
}

// firstTry asks again while a server may only have been too slow for a short TTL.
func firstTry[T any](ctx context.Context, began time.Time, try func(context.Context) (T, error)) (T, error) {
	got, err := try(ctx)
	for unanswered(err) && ctx.Err() == nil && time.Since(began) < firstAnswer {
		got, err = try(ctx)
	}
	return got, err
}

// unanswered reports whether a server, or one of a quorum, may only have been too slow for a short
// TTL.
func unanswered(err error) bool {
	var (
		none   *holdfast.QuorumError
		failed *holdfast.StoreError
		late   net.Error
	)
	if errors.As(err, &none) {
		return slices.ContainsFunc(none.Masters, func(n lockinfo.Master) bool { return unanswered(n.Err) })
	}
	return errors.As(err, &failed) && (failed.Kind == holdfast.StoreNoAnswer ||
		(failed.Kind == holdfast.StoreUnreachable || failed.Kind == holdfast.StoreNotSent) && errors.As(failed.Err, &late) && late.Timeout())
}

// wait waits in the queue, and says so on a terminal.
func (r *Run) wait(ctx context.Context, began time.Time, client *holdfast.Client, h handle, held *holdfast.HeldError) (*holdfast.Lease, error) {
	ctx, cancel := r.until(ctx, began)
	defer cancel()
	if status := newStatusLine(r.Err); status != nil && !r.Quiet && r.Log == logText {
		defer status.show(client, held)()
	}
	return h.lock(ctx)
}

// refused turns the reason why there is no lock into a text and an exit code.
func (r *Run) refused(err error) error {
	var (
		signal *cli.SignalError
		none   *holdfast.QuorumError
	)
	switch {
	case errors.As(err, &signal):
		return cli.Exitf(signal.Code(), "%w before %s was held; nothing was run", err, r.title())
	case errors.As(err, &none), errors.As(err, new(*holdfast.StoreError)):
		return r.Failure(err)
	}
	if busy := busyOf(err); busy != nil {
		return cli.ExitWith(r.Conflict, busy)
	}
	return err
}

// busyOf says that another holds the lock, or that the wait was too long. It is nil for any other
// error.
func busyOf(err error) *busyError {
	var (
		held   *holdfast.HeldError
		waited *holdfast.WaitError
	)
	switch {
	case errors.As(err, &held):
		text := fmt.Sprintf("%q is %s for another %v, %d waiting", held.Name, heldBy(held.Holder), round(held.Remaining), held.Waiters)
		return &busyError{text: text, holder: held.Holder}
	case errors.As(err, &waited):
		holder := ""
		if waited.Holder != "" {
			holder = ", held by " + show.Text(waited.Holder)
		}
		if waited.Reason == holdfast.WaitEvicted {
			holder += "; " + string(waited.Reason) + " by " + show.Text(waited.By)
		}
		return &busyError{text: fmt.Sprintf("waited %v for %q%s", round(waited.Waited), waited.Name, holder), holder: waited.Holder, waited: waited.Waited}
	}
	return nil
}

// heldBy says what keeps others out. After a release, that can be the rest of a min hold and no
// holder.
func heldBy(holder string) string {
	if holder == "" {
		return "kept from others"
	}
	return "held by " + show.Text(holder)
}

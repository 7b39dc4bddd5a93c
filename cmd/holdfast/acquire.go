package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// firstAnswer is how long a server may take for its first answer, however short the TTL: to connect
// takes time.
const firstAnswer = 3 * time.Second

// acquire asks once before it waits. So a server that is away or refuses us causes an error and no
// endless wait. A signal ends the wait.
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
	options := []holdfast.Option{holdfast.WithTTL(r.TTL), holdfast.WithOwner(owner), atLeast}
	if r.MaxHold > 0 {
		options = append(options, holdfast.WithMaxHold(r.MaxHold))
	}
	began := time.Now()
	mutex := client.Mutex(r.Name, options...)
	lease, err := mutex.TryLock(ctx)
	for unanswered(err) && ctx.Err() == nil && time.Since(began) < firstAnswer {
		lease, err = mutex.TryLock(ctx)
	}
	var held *holdfast.HeldError
	if errors.As(err, &held) && !r.Nonblock {
		r.verbose(notices, "waiting for %q, %s, %d before", r.Name, heldBy(held.Holder), held.Waiters)
		lease, err = r.wait(ctx, began, client, mutex, held)
	}
	if err := stop(); err != nil {
		if lease != nil {
			_ = lease.Release(ctx)
		}
		return nil, err
	}
	return lease, err
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
		return slices.ContainsFunc(none.Nodes, func(n holdfast.QuorumNode) bool { return unanswered(n.Err) })
	}
	return errors.As(err, &failed) && (failed.Kind == holdfast.StoreNoAnswer ||
		failed.Kind == holdfast.StoreUnreachable && errors.As(failed.Err, &late) && late.Timeout())
}

// wait waits in the queue, and says so on a terminal.
func (r *Run) wait(ctx context.Context, began time.Time, client *holdfast.Client, mutex *holdfast.Mutex, held *holdfast.HeldError) (*holdfast.Lease, error) {
	if r.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, began.Add(r.Wait))
		defer cancel()
	}
	if status := newStatusLine(r.Err); status != nil {
		// The status line has a handle of its own. With our owner, it would enter our hold; with a
		// min hold, it would keep us out.
		stop := status.show(r.Name, held, client.Mutex(r.Name, holdfast.WithTTL(r.TTL)))
		defer stop()
	}
	return mutex.Lock(ctx)
}

// refused turns the reason why there is no lock into a text and an exit code.
func (r *Run) refused(err error) error {
	var (
		signal *signalError
		held   *holdfast.HeldError
		waited *holdfast.WaitError
		none   *holdfast.QuorumError
	)
	switch {
	case errors.As(err, &signal):
		return &exitError{signal.code(), fmt.Errorf("%w before %q was held; nothing was run", err, r.Name)}
	case errors.As(err, &held):
		return &exitError{r.Conflict, fmt.Errorf("%q is %s for another %v, %d waiting", r.Name, heldBy(held.Holder), round(held.Remaining), held.Waiters)}
	case errors.As(err, &none), errors.As(err, new(*holdfast.StoreError)):
		return r.failure(err)
	case errors.As(err, &waited):
		holder := ""
		if waited.Holder != "" {
			holder = ", held by " + waited.Holder
		}
		return &exitError{r.Conflict, fmt.Errorf("waited %v for %q%s", round(waited.Waited), r.Name, holder)}
	}
	return err
}

// heldBy says what keeps others out. After a release, that can be the rest of a min hold and no
// holder.
func heldBy(holder string) string {
	if holder == "" {
		return "kept from others"
	}
	return "held by " + holder
}

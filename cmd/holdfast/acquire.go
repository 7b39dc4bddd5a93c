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
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// firstAnswer is how long a server may take for its first answer, however short the TTL: connecting takes its time.
const firstAnswer = 3 * time.Second

// acquire asks once, so that a server that is not there, or refuses us, is an answer and no endless waiting; only then it
// waits. A signal ends the waiting.
func (r *Run) acquire(ctx context.Context, client *holdfast.Client, signals *signals, voice *voice) (*holdfast.Lease, error) {
	ctx, heard := signals.end(ctx)
	owner := r.Owner
	if owner == "" {
		owner = rand.Text() // so that a nested run can be told it
	}
	// With a min hold a hand-over is confirmed for the whole TTL before it is ours. Without, it is trusted for half a second
	// at first, and a command that makes the machine busy as it starts would soon be killed.
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
		r.verbose(voice, "waiting for %q, %s, %d before", r.Name, by(held.Holder), held.Waiters)
		lease, err = r.wait(ctx, began, client, mutex, held)
	}
	if s := heard(); s != nil {
		if lease != nil {
			_ = lease.Release(ctx)
		}
		return nil, s
	}
	return lease, err
}

// unanswered tells whether a server, or one of a quorum, may only have been slow, to connect or to answer, for the little time that
// a short TTL leaves.
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

// wait stands in line, and says so on a terminal.
func (r *Run) wait(ctx context.Context, began time.Time, client *holdfast.Client, mutex *holdfast.Mutex, held *holdfast.HeldError) (*holdfast.Lease, error) {
	if r.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, began.Add(r.Wait))
		defer cancel()
	}
	if line := newLine(r.Err); line != nil {
		// Its own handle: with the owner it would enter our hold, with the min hold it would keep us out.
		stop := line.show(r.Name, held, client.Mutex(r.Name, holdfast.WithTTL(r.TTL)))
		defer stop()
	}
	return mutex.Lock(ctx)
}

// refused turns what kept us from the lock into words and an exit code.
func (r *Run) refused(err error) error {
	var (
		signal *signalError
		held   *holdfast.HeldError
		waited *holdfast.WaitError
		failed *holdfast.StoreError
		none   *holdfast.QuorumError
	)
	at := server.Redact(r.Redis)
	switch {
	case errors.As(err, &signal):
		return &exitError{signal.code(), fmt.Errorf("%w before %q was held; nothing was run", err, r.Name)}
	case errors.As(err, &held):
		return &exitError{r.Conflict, fmt.Errorf("%q is %s for another %v, %d waiting", r.Name, by(held.Holder), round(held.Remaining), held.Waiters)}
	case errors.As(err, &none):
		return &exitError{exitNoServer, err}
	case errors.As(err, &failed) && failed.Kind == holdfast.StoreDenied:
		return &exitError{exitDenied, fmt.Errorf("the server at %s refuses us: %w", at, failed.Err)}
	case errors.As(err, &failed) && (failed.Kind == holdfast.StoreUnreachable || failed.Kind == holdfast.StoreNoAnswer):
		return &exitError{exitNoServer, fmt.Errorf("no answer from a server at %s: %w (--redis or REDIS_URL names another; holdfast dev is one to try)", at, failed.Err)}
	case errors.As(err, &failed):
		return &exitError{exitNoServer, fmt.Errorf("the server at %s cannot serve: %s: %w", at, failed.Kind, failed.Err)}
	case errors.As(err, &waited):
		by := ""
		if waited.Holder != "" {
			by = ", held by " + waited.Holder
		}
		return &exitError{r.Conflict, fmt.Errorf("waited %v for %q%s", round(waited.Waited), r.Name, by)}
	}
	return err
}

// by says who keeps others out. After a release that is a min hold's time alone, and nobody.
func by(holder string) string {
	if holder == "" {
		return "kept from others"
	}
	return "held by " + holder
}

package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func lease() []test {
	return []test{
		{"a check", leaseCheck, 0},
		{"a loss has a cause", leaseLost, 0},
	}
}

type contextKey struct{}

// A Check changes nothing. With a context that is over it fails, and the lease stays.
func leaseCheck(e *env) {
	lease := e.lock(e.client().Mutex(name))
	e.checkHolds(lease, lease)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	e.checkIs(lease.Check(over), context.Canceled)
	e.must(lease.Err())
	e.release(lease)
}

// Trap 6: the caller can tell a loss from its own cancel.
func leaseLost(e *env) {
	c := e.client()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lease := e.take(inContext(ctx, c.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(ttl)).Lock))
	cause := e.awaitEnd(leased.Context(lease))
	e.checkLost(cause, holdfast.LossExpired)
	if lost := new(holdfast.LostError); errors.As(cause, &lost) {
		checkEqual(e, "name", lost.Name, name)
		checkEqual(e, "token", lost.Token, lease.Token())
	}
	if errors.Is(cause, context.Canceled) || ctx.Err() != nil {
		e.Errorf("%v looks like a cancel", cause)
	}
	if late := leased.Context(lease); late.Err() == nil || lease.Until().After(time.Now()) {
		e.Errorf("a lost lease is valid again: %v, until %v", late.Err(), lease.Until())
	}
	if events := c.await(holdfast.EventLost, 1); !errors.Is(events[0].Err, cause) {
		e.Errorf("the observer was told %v", events)
	}
}

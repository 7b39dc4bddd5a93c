package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

type contextKey struct{}

// Trap 6: the caller can tell a loss from its own cancel.
func leaseLost(e *env) {
	c, other := e.client(), e.client()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lease := e.take(inContext(ctx, c.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(ttl)).Lock))
	first := lease.Until()
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
	if until := lease.Until(); until.After(first) || len(c.of(holdfast.EventRenewed)) > 0 {
		e.Errorf("it was renewed for %v", until.Sub(first))
	}
	e.checkLost(lease.Err(), holdfast.LossExpired)
	if lost := c.await(holdfast.EventLost, 1)[0]; !errors.Is(lost.Err, cause) || lost.Name != name ||
		lost.Token != lease.Token() {
		e.Errorf("the observer was told %+v", lost)
	}
	e.release(e.lock(other.Mutex(name)))
}

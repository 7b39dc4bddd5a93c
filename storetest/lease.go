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
		{"what it says of itself", leaseSays, 0},
		{"a check", leaseCheck, 0},
		{"a loss has a cause", leaseLost, 0},
		{"nil and zero", leaseZero, 0},
	}
}

type contextKey struct{}

// A lease reports its name, an owner of its own, its token, and a trust that ends within its TTL.
// The name and the owner stay after the release.
func leaseSays(e *env) {
	c := e.client()
	before := time.Now()
	one, other := e.lock(c.Mutex("one", holdfast.WithTTL(20*time.Second))), e.lock(c.Mutex("other"))
	if one.Name() != "one" || one.Owner() == "" || one.Owner() == other.Owner() {
		e.Errorf("name %q and owner %q, want \"one\" and an owner other than %q", one.Name(), one.Owner(), other.Owner())
	}
	if until := one.Until(); until.Before(before) || until.After(time.Now().Add(20*time.Second)) {
		e.Errorf("trusted for %v, want at most 20s", time.Until(until))
	}
	if tokens := one.Tokens(); len(tokens) != 1 || tokens["one"] != one.Token() {
		e.Errorf("tokens %v, token %d", tokens, one.Token())
	}
	e.release(one)
	e.release(other)
	if one.Name() != "one" || one.Owner() == "" {
		e.Errorf("a released lease has name %q and owner %q", one.Name(), one.Owner())
	}
}

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

// A nil and a zero Lease hold nothing: each method says so, and none panics or blocks.
func leaseZero(e *env) {
	var none *holdfast.Lease
	for _, lease := range []*holdfast.Lease{none, new(holdfast.Lease)} {
		e.checkIs(lease.Err(), holdfast.ErrNotHeld)
		e.checkIs(lease.Release(), holdfast.ErrNotHeld)
		for _, call := range leaseCalls(lease) {
			e.checkIs(call(e.ctx()), holdfast.ErrNotHeld)
		}
		e.checkIs(e.awaitEnd(leased.Context(lease)), holdfast.ErrNotHeld)
		<-lease.Done()
		if lease.Name() != "" || lease.Owner() != "" || lease.Token() != 0 || lease.Tokens() != nil ||
			!lease.Until().IsZero() {
			e.Errorf("%#v has a name, an owner, a token or an end", lease)
		}
	}
}

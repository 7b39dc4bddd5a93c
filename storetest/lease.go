package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
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

func leaseFrom() []test {
	return []test{
		{"all", leaseFromAll, 0},
	}
}

func (e *env) leaseOf(ctx context.Context) *holdfast.Lease {
	e.Helper()
	lease, ok := holdfast.LeaseFrom(ctx)
	if !ok || lease == nil {
		e.Fatalf("got %v, %v", lease, ok)
	}
	return lease
}

// checkSame fails unless two leases are one entry into one hold.
func (e *env) checkSame(got, want *holdfast.Lease) {
	e.Helper()
	if got.Name() != want.Name() || got.Owner() != want.Owner() || !maps.Equal(got.Tokens(), want.Tokens()) ||
		got.Done() != want.Done() {
		e.Errorf("got the lease of %q by %q with %v, want %q by %q with %v",
			got.Name(), got.Owner(), got.Tokens(), want.Name(), want.Owner(), want.Tokens())
	}
}

// leaseNames returns the names of the leases of a context, the innermost first.
func leaseNames(ctx context.Context) (names []string) {
	for lease := range holdfast.LeasesFrom(ctx) {
		names = append(names, lease.Name())
	}
	return names
}

// All leases of a context, the innermost first: those under whose contexts they were taken, and of
// a bound context those of both sides.
func leaseFromAll(e *env) {
	c := e.client()
	outer := e.lock(c.Mutex("outer"))
	group := e.takeUnder(outer, c.All([]string{"g", "h"}).Lock)
	inner := e.takeUnder(group, c.Mutex("inner").Lock)
	other := e.lock(c.Mutex("other"))
	bound, cancel := inner.Bind(leased.Context(other))
	defer cancel()
	for _, test := range []struct {
		ctx  context.Context
		want []string
	}{
		{nil, nil}, {context.Background(), nil}, {leased.Context(outer), []string{"outer"}},
		{leased.Context(inner), []string{"inner", "g", "outer"}}, {bound, []string{"inner", "g", "outer", "other"}},
	} {
		if got := leaseNames(test.ctx); !slices.Equal(got, test.want) {
			e.Errorf("got %q, want %q", got, test.want)
		}
	}
	for lease := range holdfast.LeasesFrom(bound) { // stops where the caller does
		e.checkSame(lease, inner)
		break
	}
	e.release(other, inner, group, outer)
	if got := leaseNames(bound); len(got) != 4 {
		e.Errorf("of leases that have ended: got %q", got)
	}
}

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

func bind() []test {
	return []test{
		{"ends with the request", bindRequest, 0},
		{"ends with cancel", bindCancel, 0},
		{"ends with the lease", bindLease, 0},
		{"bad arguments", bindArguments, 0},
	}
}

var errCaller = errors.New("the caller's own")

// The context of a lease lives on when the request is cancelled: it carries its values alone. Work
// under it goes on for nobody. Work under the bound context ends, and the lease stays.
func bindRequest(e *env) {
	c := e.client()
	request, cancel := context.WithCancelCause(context.WithValue(e.ctx(), contextKey{}, "value"))
	defer cancel(nil)
	lease := e.take(inContext(request, c.Mutex(name).Lock))
	bound, unbind := lease.Bind(request)
	defer unbind()
	at, ok := bound.Deadline()
	if want, _ := request.Deadline(); !ok || !at.Equal(want) || bound.Value(contextKey{}) != "value" ||
		bound.Err() != nil {
		e.Errorf("deadline %v, value %v, ended %v", at, bound.Value(contextKey{}), bound.Err())
	}
	cancel(errCaller)
	e.checkIs(e.awaitEnd(bound), errCaller)
	if leased.Context(lease).Err() != nil || lease.Err() != nil {
		e.Errorf("the lease has ended with the request: %v", lease.Err())
	}
	e.release(lease)
}

func bindCancel(e *env) {
	c := e.client()
	lease := e.lock(c.Mutex(name))
	bound, unbind := lease.Bind(e.ctx())
	other, unbindOther := lease.Bind(e.ctx())
	defer unbindOther()
	unbind()
	e.checkIs(e.awaitEnd(bound), context.Canceled)
	if other.Err() != nil || lease.Err() != nil {
		e.Errorf("others ended too: %v, %v", other.Err(), lease.Err())
	}
	unbind()
	e.release(lease)
	e.checkIs(e.awaitEnd(other), context.Canceled)
}

func bindLease(e *env) {
	for cause, end := range map[error]func(*client, *holdfast.Lease){
		context.Canceled:   func(_ *client, lease *holdfast.Lease) { e.release(lease) },
		holdfast.ErrLost:   func(_ *client, lease *holdfast.Lease) { e.awaitEnd(leased.Context(lease)) },
		holdfast.ErrClosed: func(c *client, _ *holdfast.Lease) { e.close(c) },
	} {
		c, ctx := e.client(), e.ctx()
		var options []holdfast.Option
		if errors.Is(cause, holdfast.ErrLost) {
			options = []holdfast.Option{holdfast.WithoutRenewal(), holdfast.WithTTL(ttl)}
		}
		lease := e.lock(c.Mutex(name, options...))
		bound, unbind := lease.Bind(ctx)
		defer unbind()
		end(c, lease)
		if e.checkIs(e.awaitEnd(bound), cause); ctx.Err() != nil {
			e.Error("the caller's context has ended, too")
		}
	}
}

func bindArguments(e *env) {
	var none *holdfast.Lease
	for _, lease := range []*holdfast.Lease{none, new(holdfast.Lease)} {
		bound, unbind := lease.Bind(context.WithValue(e.ctx(), contextKey{}, "value"))
		unbind()
		e.checkIs(e.awaitEnd(bound), holdfast.ErrNotHeld)
		if bound.Value(contextKey{}) != "value" {
			e.Error("values are not carried")
		}
	}
	lease := e.lock(e.client().Mutex(name))
	var noContext context.Context
	bound, unbind := lease.Bind(noContext)
	unbind()
	e.checkRefused(e.awaitEnd(bound), "ctx")
	if _, ok := bound.Deadline(); ok || lease.Err() != nil {
		e.Errorf("the lease: %v", lease.Err())
	}
	long, cancel := context.WithTimeout(context.Background(), time.Hour)
	cancel()
	over, unbindOver := lease.Bind(long)
	defer unbindOver()
	if over.Err() == nil {
		e.Error("ctx was over before, and the bound context is not")
	}
	e.release(lease)
}

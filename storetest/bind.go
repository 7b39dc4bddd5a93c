package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

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

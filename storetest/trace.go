package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func tracing() []test {
	return []test{
		{"a caller that waits is told where the holder belongs", traceOfAHolder, 0},
		{"a hold that passes on inside the process", tracePassed, 0},
		{"a traced hold is detached, attached and downgraded", traceKept, 0},
	}
}

// A tracer is an observer that knows where a context belongs.
type tracer struct{ holdfast.Observer }

type traceKey struct{}

// Trace implements telemetry.Tracer.
func (tracer) Trace(ctx context.Context) string {
	text, _ := ctx.Value(traceKey{}).(string)
	return text
}

// traced is a change of a client's configuration: it traces its callers.
func traced(c *holdfast.Config) { c.Observer = tracer{c.Observer} }

// traceContext returns a context of a caller that belongs somewhere.
func (e *env) traceContext(where string) context.Context {
	return context.WithValue(e.ctx(), traceKey{}, where)
}

const someTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func traceOfAHolder(e *env) {
	for _, options := range [][]holdfast.Option{nil, {holdfast.WithOwner("o")}} {
		a, b, plain := e.client(traced, label("A")), e.client(), e.client(label("plain"))
		lease := e.take(inContext(e.traceContext(someTrace), a.Mutex(name, options...).Lock))
		want := func(events []holdfast.Event) {
			e.Helper()
			if len(events) != 1 || events[0].Holder != "A" || events[0].HolderTrace != someTrace ||
				// too few masters named it
				events[0].HolderToken != lease.Token() && !(e.backend.NoQueue && events[0].HolderToken == 0) {
				e.Errorf("got %+v, want the holder A with token %d, in %s", events, lease.Token(), someTrace)
			}
		}
		e.checkIs(errorOf(b.Mutex(name).TryLock(e.ctx())), holdfast.ErrHeld)
		want(b.of(holdfast.EventRefused))
		e.giveUp(b, b.Mutex(name).Lock)
		want(b.of(holdfast.EventGaveUp))
		w := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
		e.release(lease)
		next := w.await()
		want(b.of(holdfast.EventGranted))
		e.release(next)

		lease = e.lock(plain.Mutex(name))
		w = e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
		e.release(lease)
		e.release(w.await())
		if granted := b.of(holdfast.EventGranted); len(granted) != 2 || granted[1].Holder != "plain" ||
			granted[1].HolderTrace != "" {
			e.Errorf("got %+v, want a holder that is not traced", granted)
		}
	}
}

// The second caller gives back the hold of the first with its own request. The third gets that of
// the second, without a request.
func tracePassed(e *env) {
	c, callers := e.client(traced), []string{"first", "second", "third"}
	lease := e.take(inContext(e.traceContext(callers[0]), c.Mutex(name).Lock))
	var waiters []*waiter
	for _, caller := range callers[1:] {
		waiters = append(waiters, e.startWaiting(e.traceContext(caller), c, c.Mutex(name).Lock))
	}
	for _, w := range waiters {
		e.release(lease)
		lease = w.await()
	}
	e.release(lease)
	told := map[any]string{}
	for _, event := range append(c.of(holdfast.EventPassed), c.of(holdfast.EventGranted)...) {
		told[event.Context.Value(traceKey{})] = event.HolderTrace
	}
	if len(told) != 3 || told["first"] != "" || told["second"] != "first" || told["third"] != "second" {
		e.Errorf("got %v", told)
	}
}

// The trace is a part of what names a hold. So all that is done with a hold must name it alike.
func traceKept(e *env) {
	a, b := e.client(traced), e.client()
	lease := e.take(inContext(e.traceContext(someTrace), a.RWMutex(name).Lock))
	e.downgrade(lease)
	ticket := e.detach(lease)
	lease = e.attach(b, ticket)
	e.must(lease.Check(e.ctx()))
	e.release(lease)
	again := e.take(b.RWMutex(name).TryLock)
	e.release(again)

	group := e.take(inContext(e.traceContext(someTrace), a.All([]string{"1", "2"}).TryLock))
	if _, err := b.Mutex("2").TryLock(e.ctx()); err == nil {
		e.Error("b got a name of the group")
	} else if refused := b.of(holdfast.EventRefused); len(refused) != 1 || refused[0].HolderTrace != someTrace {
		e.Errorf("got %+v", refused)
	}
	e.release(group)
}

// events is an observer that remembers all events.
type events struct {
	t *testing.T

	mu   sync.Mutex
	seen []holdfast.Event
}

func newEvents(t *testing.T) *events { return &events{t: t} }

// Observe implements holdfast.Observer.
func (o *events) Observe(event holdfast.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, event)
}

func (o *events) of(kind holdfast.EventKind) []holdfast.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.seen), func(e holdfast.Event) bool { return e.Kind != kind })
}

func (o *events) await(kind holdfast.EventKind, n int) []holdfast.Event {
	o.t.Helper()
	if !soon(func() bool { return len(o.of(kind)) >= n }) {
		o.t.Fatalf("never: %d events %q", n, kind)
	}
	return o.of(kind)
}

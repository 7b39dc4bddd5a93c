package observing_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/otelholdfast"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A rig is an observer on the SDK, and what the SDK has of it.
type rig struct {
	t        testing.TB
	observer *otelholdfast.Observer
	reader   *metric.ManualReader
	meters   *metric.MeterProvider
	spans    *tracetest.InMemoryExporter
	tracers  *trace.TracerProvider
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, reader: metric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	r.tracers = trace.NewTracerProvider(trace.WithSyncer(r.spans))
	var err error
	r.meters = metric.NewMeterProvider(metric.WithReader(r.reader))
	r.observer, err = otelholdfast.New(&otelholdfast.Options{Meters: r.meters, Tracers: r.tracers})
	fatal.If(t, err)
	return r
}

// figures returns the values of all series: of a counter its sum, of a histogram how many it has.
func (r *rig) figures() map[string]int64 {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	fatal.If(r.t, r.reader.Collect(context.Background(), &all))
	out := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					out[series(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					out[series(m.Name, p.Attributes)] = int64(p.Count)
				}
			}
		}
	}
	return out
}

// series names a series as "lock.holds mutex", with the values of its attributes in the order of
// their keys.
func series(name string, set attribute.Set) string {
	words := []string{name}
	for _, a := range set.ToSlice() {
		words = append(words, a.Value.Emit())
	}
	return strings.Join(words, " ")
}

// total adds up the series of a metric that have an attribute of this value; all if it is empty.
func total(figures map[string]int64, name, attribute string) (sum int) {
	for series, value := range figures {
		words := strings.Fields(series)
		if words[0] == name && (attribute == "" || slices.Contains(words[1:], attribute)) {
			sum += int(value)
		}
	}
	return sum
}

func TestSpanOfContendedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server := newRig(t), holdfasttest.Start(t)
		client := server.Client(&holdfast.Config{Observer: r.observer})
		ctx, parent := r.tracers.Tracer("test").Start(t.Context(), "work")
		held := lock(ctx, t, client, "order:42")
		go func() {
			<-time.After(2 * time.Second)
			release(t, held)
		}()
		if _, err := client.Mutex("order:42", holdfast.WithWait(time.Second)).Lock(ctx); !errors.Is(err,
			holdfast.ErrWaitOver) {
			t.Fatal(err)
		}
		lease := lock(ctx, t, client, "order:42")
		release(t, lease)
		parent.End()
		spans := r.spans.GetSpans()
		if len(spans) != 3 || spans[0].Name != "lock.wait" || spans[1].Name != "lock.wait" {
			t.Fatalf("the spans are %v, want two waits and the caller's", names(spans))
		}
		gave, won, caller := spans[0], spans[1], spans[2]
		for _, wait := range spans[:2] {
			if wait.Parent.SpanID() != caller.SpanContext.SpanID() {
				t.Error("the wait is no child of the caller's span")
			}
			if took := wait.EndTime.Sub(wait.StartTime); took < 900*time.Millisecond || took > 1100*time.Millisecond {
				t.Errorf("the wait took %v, want 1s", took)
			}
		}
		if gave.Status.Code != codes.Error || won.Status.Code == codes.Error {
			t.Errorf("the states are %v and %v", gave.Status, won.Status)
		}
		if got := value(won.Attributes, "lock.token").AsInt64(); got != lease.Token() {
			t.Errorf("the token is %d, want %d", got, lease.Token())
		}
		if value(gave.Attributes, "lock.holder").AsString() == "" {
			t.Error("the wait that was given up does not name the holder")
		}
		got := events(caller)
		if slices.Sort(got); !slices.Equal(got, []string{"lock.acquired", "lock.acquired", "lock.released",
			"lock.released"}) {
			t.Errorf("the caller's span has the events %v", got)
		}
	})
}

// wait has a span wait for a lock that another holds, and returns that span.
func (r *rig) wait(t *testing.T, client *holdfast.Client, held *holdfast.Lease) tracetest.SpanStub {
	t.Helper()
	waiter := harness.Claim(t.Context(), client.Mutex(held.Name()))
	synctest.Wait() // it waits
	release(t, held)
	release(t, waiter.Got(t))
	spans := r.spans.GetSpans()
	if len(spans) == 0 || spans[len(spans)-1].Name != "lock.wait" {
		t.Fatalf("the spans are %v, want a wait", names(spans))
	}
	return spans[len(spans)-1]
}

// The span of a wait links to the span under which the holder asked, in another process and in the
// same, and names the holder and its token.
func TestSpanLinksToTheHolder(t *testing.T) {
	for where, clients := range map[string]int{"another process": 2, "the same process": 1} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, server := newRig(t), holdfasttest.Start(t)
				client := server.Client(&holdfast.Config{Observer: r.observer, Label: "holder"})
				ctx, work := newRig(t).tracers.Tracer("test").Start(t.Context(), "work")
				defer work.End()
				lease := lock(ctx, t, client, "order:42")
				if clients == 2 {
					client = server.Client(&holdfast.Config{Observer: r.observer})
				}
				wait := r.wait(t, client, lease)
				if len(wait.Links) != 1 || wait.Links[0].SpanContext.TraceID() != work.SpanContext().TraceID() ||
					wait.Links[0].SpanContext.SpanID() != work.SpanContext().SpanID() ||
					!wait.Links[0].SpanContext.IsSampled() {
					t.Errorf("the links are %+v, want one to %+v", wait.Links, work.SpanContext())
				}
				holder, token := value(wait.Attributes, "lock.holder").AsString(), value(wait.Attributes,
					"lock.holder.token").AsInt64()
				if holder != "holder" || token != lease.Token() {
					t.Errorf("it names %q with token %d, want the holder with %d", holder, token, lease.Token())
				}
			})
		})
	}
}

// A foreign tracer says what it likes.
type forger struct {
	holdfast.Observer
	text string
}

func (f forger) Trace(context.Context) string { return f.text }

func TestSpanOfForgedTraceHasNoLink(t *testing.T) {
	for _, text := range []string{"x", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01", "<script>alert(1)</script>"} {
		synctest.Test(t, func(t *testing.T) {
			r, server := newRig(t), holdfasttest.Start(t)
			lease, err := server.Client(&holdfast.Config{Observer: forger{r.observer,
				text}}).Mutex("order:42").Lock(t.Context())
			fatal.If(t, err)
			if wait := r.wait(t, server.Client(&holdfast.Config{Observer: r.observer}), lease); len(wait.Links) != 0 {
				t.Errorf("%q made the links %+v", text, wait.Links)
			}
		})
	}
}

func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, prom := newRig(t), holdfasttest.Start(t), promholdfast.NewObserver()
		client := server.Client(&holdfast.Config{Observer: holdfast.Observers(r.observer, prom)})
		ctx, parent := r.tracers.Tracer("test").Start(t.Context(), "work")
		lease := lock(ctx, t, client, "order:42")
		server.Lose(lease)
		synctest.Wait()
		parent.End()
		if caller := r.spans.GetSpans()[0]; caller.Status.Code != codes.Error ||
			!slices.Contains(events(caller), "lock.lost") {
			t.Errorf("the caller's span has %v and the events %v", caller.Status, events(caller))
		}
		if figures := r.figures(); total(figures, "lock.losses", "") != 1 || total(figures, "lock.holds", "") != 0 {
			t.Errorf("after the loss the figures are %v", figures)
		}
		if got := gather(t, prom); sum(got["holdfast_losses_total"], "") != 1 || sum(got["holdfast_holds"], "") != 0 {
			t.Errorf("after the loss: %v", got)
		}
	})
}

func names(spans tracetest.SpanStubs) (out []string) {
	for _, s := range spans {
		out = append(out, s.Name)
	}
	return out
}

func events(span tracetest.SpanStub) (out []string) {
	for _, e := range span.Events {
		if strings.HasPrefix(e.Name, "lock.") {
			out = append(out, e.Name)
		}
	}
	return out
}

func value(attributes []attribute.KeyValue, key attribute.Key) attribute.Value {
	set := attribute.NewSet(attributes...)
	found, _ := set.Value(key)
	return found
}

package otel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	"github.com/holdfast-go/holdfast/otelholdfast"
)

// A rig is an observer on the SDK, and what the SDK has of it.
type rig struct {
	t        *testing.T
	observer *otelholdfast.Observer
	reader   *metric.ManualReader
	spans    *tracetest.InMemoryExporter
	tracers  *trace.TracerProvider
}

func newRig(t *testing.T, class func(string) string) *rig {
	t.Helper()
	r := &rig{t: t, reader: metric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	r.tracers = trace.NewTracerProvider(trace.WithSyncer(r.spans))
	var err error
	r.observer, err = otelholdfast.New(&otelholdfast.Options{
		Meters: metric.NewMeterProvider(metric.WithReader(r.reader)), Tracers: r.tracers, Class: class,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// figures are the values of all series: of a counter its sum, of a histogram how many it has.
func (r *rig) figures() map[string]int64 {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		r.t.Fatal(err)
	}
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

// A counting observer counts events as they come.
type counting struct {
	next holdfast.Observer

	mu     sync.Mutex
	counts map[string]int64
}

func (c *counting) Observe(e holdfast.Event) {
	c.mu.Lock()
	c.counts[e.Kind.String()]++
	c.mu.Unlock()
	c.next.Observe(e)
}

// All calls of a run with contention are counted exactly, and nothing is held or waits at the end.
func TestFiguresAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		counter := &counting{next: r.observer, counts: map[string]int64{}}
		server := holdfasttest.Start(t)
		var work sync.WaitGroup
		for p := range 3 {
			client := server.Client(&holdfast.Config{Observer: counter})
			for w := range 4 {
				work.Go(func() {
					for i := range 20 {
						use(t, client, p+w+i)
					}
				})
			}
		}
		work.Wait()
		synctest.Wait()
		got := r.figures()
		total := func(prefix string) (sum int64) {
			for name, value := range got {
				if strings.HasPrefix(name, prefix+" ") {
					sum += value
				}
			}
			return sum
		}
		outcome := func(name string) (sum int64) {
			for _, contended := range []string{"false", "true"} {
				sum += got["lock.acquisitions "+contended+" mutex "+name]
			}
			return sum
		}
		want := counter.counts
		for _, c := range []struct {
			figure    string
			got, want int64
		}{
			{"granted", outcome("granted"), want["granted"]},
			{"passed on", outcome("passed_on"), want["passed"]},
			{"refused", outcome("refused"), want["refused"]},
			{"gave up", outcome("gave_up"), want["gave up"]},
			{"errors", outcome("error"), 0},
			{"all calls", total("lock.acquisitions"), 3 * 4 * 20},
			{"waits", total("lock.wait_time"), 3 * 4 * 20},
			{"holds ended", total("lock.hold_time"), want["granted"] + want["passed"]},
			{"lost", total("lock.losses"), want["lost"]},
			{"held now", total("lock.holds"), 0},
			{"waiting now", total("lock.waiters"), 0},
		} {
			if c.got != c.want {
				t.Errorf("%s: %d, want %d", c.figure, c.got, c.want)
			}
		}
		if want["granted"] == 0 || want["passed"] == 0 || want["refused"] == 0 || want["gave up"] == 0 {
			t.Errorf("the run has not shown all: %v", want)
		}
	})
}

// use locks in one of three ways.
func use(t *testing.T, client *holdfast.Client, way int) {
	lock := client.Mutex("order:42", holdfast.WithWait(10*time.Millisecond))
	acquire := lock.Lock
	if way%3 == 0 {
		acquire = lock.TryLock
	}
	lease, err := acquire(t.Context())
	if err != nil {
		if !errors.Is(err, holdfast.ErrHeld) && !errors.Is(err, holdfast.ErrWaitOver) {
			t.Error(err)
		}
		<-time.After(3 * time.Millisecond)
		return
	}
	<-time.After(2 * time.Millisecond)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Names make no series, and classes no more than 1,001.
func TestSeriesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		class func(string) string
		most  int // series of one instrument
	}{
		"no class":             {nil, 1},
		"one class":            {func(string) string { return "order" }, 1},
		"a class of each name": {func(name string) string { return name }, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.class)
			for i := range 10000 {
				r.observer.Observe(holdfast.Event{
					Kind: holdfast.EventGranted, Name: fmt.Sprint("order:", i), LockKind: "mutex", Context: t.Context(),
				})
			}
			series, sum := 0, int64(0)
			for name, value := range r.figures() {
				if strings.HasPrefix(name, "lock.holds ") {
					series, sum = series+1, sum+value
				}
			}
			if series != c.most || sum != 10000 {
				t.Errorf("%d series count %d holds, want %d and 10000", series, sum, c.most)
			}
		})
	}
}

// The events of an uncontended pair, with the SDK behind them.
func TestPairAllocatesLittle(t *testing.T) {
	r := newRig(t, nil)
	begin := holdfast.Event{Kind: holdfast.EventGranted, Name: "order:42", LockKind: "mutex", Token: 1, Waited: time.Millisecond, Context: t.Context()}
	end := holdfast.Event{Kind: holdfast.EventReleased, Name: "order:42", LockKind: "mutex", Token: 1, Held: time.Millisecond, Context: t.Context()}
	if got := testing.AllocsPerRun(1000, func() { r.observer.Observe(begin); r.observer.Observe(end) }); got > 2 {
		t.Errorf("a pair makes %v allocations, want at most 2", got)
	}
}

func BenchmarkPair(b *testing.B) {
	observer, err := otelholdfast.New(&otelholdfast.Options{
		Meters: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), Tracers: trace.NewTracerProvider(),
	})
	if err != nil {
		b.Fatal(err)
	}
	begin := holdfast.Event{Kind: holdfast.EventGranted, Name: "order:42", LockKind: "mutex", Token: 1, Waited: time.Millisecond, Context: b.Context()}
	end := holdfast.Event{Kind: holdfast.EventReleased, Name: "order:42", LockKind: "mutex", Token: 1, Held: time.Millisecond, Context: b.Context()}
	b.ReportAllocs()
	for b.Loop() {
		observer.Observe(begin)
		observer.Observe(end)
	}
}

func TestSpanOfContendedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		server := holdfasttest.Start(t)
		client := server.Client(&holdfast.Config{Observer: r.observer})
		ctx, parent := r.tracers.Tracer("test").Start(t.Context(), "work")
		held, err := client.Mutex("order:42").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-time.After(2 * time.Second)
			if err := held.Release(ctx); err != nil {
				t.Error(err)
			}
		}()
		if _, err := client.Mutex("order:42", holdfast.WithWait(time.Second)).Lock(ctx); !errors.Is(err, holdfast.ErrWaitOver) {
			t.Fatal(err)
		}
		lease, err := client.Mutex("order:42").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}
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
		if got := events(caller); got != "lock.acquired lock.released lock.acquired lock.released" {
			t.Errorf("the caller's span has the events %s", got)
		}
	})
}

func TestSpanOfLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		server := holdfasttest.Start(t)
		client := server.Client(&holdfast.Config{Observer: r.observer})
		ctx, parent := r.tracers.Tracer("test").Start(t.Context(), "work")
		lease, err := client.Mutex("order:42").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		server.Lose(lease)
		synctest.Wait()
		parent.End()
		if caller := r.spans.GetSpans()[0]; caller.Status.Code != codes.Error || !strings.Contains(events(caller), "lock.lost") {
			t.Errorf("the caller's span has %v and the events %s", caller.Status, events(caller))
		}
		lost := int64(0)
		for name, value := range r.figures() {
			if strings.HasPrefix(name, "lock.losses ") {
				lost += value
			}
		}
		if lost != 1 || r.figures()["lock.holds mutex"] != 0 {
			t.Errorf("after the loss the figures are %v", r.figures())
		}
	})
}

func names(spans tracetest.SpanStubs) (out []string) {
	for _, s := range spans {
		out = append(out, s.Name)
	}
	return out
}

func events(span tracetest.SpanStub) string {
	var out []string
	for _, e := range span.Events {
		if strings.HasPrefix(e.Name, "lock.") {
			out = append(out, e.Name)
		}
	}
	return strings.Join(out, " ")
}

func value(attributes []attribute.KeyValue, key string) attribute.Value {
	for _, a := range attributes {
		if string(a.Key) == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

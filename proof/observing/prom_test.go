package observing_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/otelholdfast"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/shard"
)

func gather(t *testing.T, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	fatal.If(t, registry.Register(c))
	return scrape(t, registry)
}

func scrape(t *testing.T, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	fatal.If(t, err)
	out := map[string]*dto.MetricFamily{}
	for _, f := range families {
		out[f.GetName()] = f
	}
	return out
}

// sum adds up the series of a family that have a label of this value, and all if it is empty; of a
// histogram, how many values they have.
func sum(f *dto.MetricFamily, label string) (total float64) {
	for _, m := range f.GetMetric() {
		has := func(l *dto.LabelPair) bool { return l.GetValue() == label }
		if label == "" || slices.ContainsFunc(m.GetLabel(), has) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return total
}

// A Collector tells of all processes, by class, and asks the server no more often than it may.
func TestCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		class := func(string) string { return "order" }
		here, there := server.Client(&holdfast.Config{Class: class}), server.Client(nil)
		collector := promholdfast.NewCollector(here, nil)
		lease := lock(t.Context(), t, there, "order:42")
		lock(t.Context(), t, there, "order:43")
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 3 { // three processes
			client := server.Client(nil)
			waiting.Go(func() { _, _ = client.Mutex("order:42").Lock(ctx) })
		}
		<-time.After(time.Minute)
		for name, want := range map[string]float64{
			"holdfast_names": 2, "holdfast_held_names": 2, "holdfast_queued_waiters": 3, "holdfast_longest_queue": 3,
			"holdfast_longest_wait_seconds": 60,
			"holdfast_oldest_hold_seconds":  60, "holdfast_late_holds": 0, "holdfast_list_success": 1,
		} {
			if got := sum(gather(t, collector)[name], ""); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		cancel()
		waiting.Wait()
		release(t, lease)
		if got := sum(gather(t, collector)["holdfast_names"], ""); got != 2 {
			t.Errorf("a second scrape asked the server again: %v names", got)
		}
		<-time.After(15 * time.Second)
		if got := sum(gather(t, collector)["holdfast_names"], ""); got != 1 {
			t.Errorf("after the release there are %v names, want 1", got)
		}
		server.Silence()
		<-time.After(15 * time.Second)
		got := gather(t, collector)
		if got["holdfast_names"] != nil || sum(got["holdfast_list_success"], "") != 0 {
			t.Errorf("while the server is away: %v", got)
		}
	})
}

// The names with the longest waits are told by name, as many as are asked for, also such as are no
// UTF-8.
func TestCollectorTellsTheWorstNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		holder, waiter := server.Client(nil), server.Client(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range 12 {
			name := fmt.Sprintf("order:\xff%d", i)
			lock(ctx, t, holder, name)
			waiting.Go(func() { _, _ = waiter.Mutex(name).Lock(ctx) })
			<-time.After(time.Second)
		}
		for worst, want := range map[int]int{0: 0, 3: 3, 99: promholdfast.MaxWorst} {
			got := gather(t, promholdfast.NewCollector(holder, &promholdfast.CollectorOptions{Worst: worst}))
			named := got["holdfast_worst_wait_seconds"].GetMetric()
			if len(named) != want {
				t.Errorf("Worst %d tells %d names, want %d", worst, len(named), want)
			}
			for i := range want {
				label, seconds := strconv.Quote(fmt.Sprintf("order:\xff%d", i)), float64(12-i)
				if sum(got["holdfast_worst_wait_seconds"], label) != seconds {
					t.Errorf("Worst %d: no series of %s with %v s, in %v", worst, label, seconds, named)
				}
			}
		}
		cancel()
		waiting.Wait()
	})
}

// The histograms of both observers have the same boundaries, so that their figures can be compared.
func TestBoundariesAreThoseOfOpenTelemetry(t *testing.T) {
	prom, r := promholdfast.NewObserver(), newRig(t)
	for _, o := range []holdfast.Observer{prom, r.observer} {
		o.Observe(holdfast.Event{Kind: holdfast.EventGranted, Name: "order:42", LockKind: "mutex", Context: t.Context(),
			Waited: time.Millisecond})
	}
	var ours, theirs []float64
	for _, bucket := range gather(t, prom)["holdfast_wait_seconds"].GetMetric()[0].GetHistogram().GetBucket() {
		ours = append(ours, bucket.GetUpperBound())
	}
	var all metricdata.ResourceMetrics
	fatal.If(t, r.reader.Collect(context.Background(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "lock.wait_time" {
			theirs = m.Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds
		}
	}
	if len(ours) == 0 || !slices.Equal(ours, theirs) {
		t.Errorf("the boundaries are %v, and %v with OpenTelemetry", ours, theirs)
	}
}

// The figures of a set of shards are those of its Counts, in both forms.
func TestShardFigures(t *testing.T) {
	set := shard.New(holdfasttest.New(t), "orders\xff", 4)
	registry, r := prometheus.NewPedanticRegistry(), newRig(t)
	fatal.If(t, observeShards(registry, r.meters.Meter("test"), set))
	figures := func(held, taken, givenBack float64) {
		t.Helper()
		all := scrape(t, registry)
		for name, want := range map[string]float64{
			"holdfast_shards": 4, "holdfast_shards_held": held, "holdfast_shards_taken_total": taken,
			"holdfast_shards_given_back_total": givenBack, "holdfast_shards_lost_total": 0,
		} {
			if got := sum(all[name], ""); got != want || len(all[name].GetMetric()) != 1 {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	}
	figures(0, 0, 0)
	began := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- set.Run(ctx, func(ctx context.Context, i int) error {
			began <- i
			<-ctx.Done()
			return nil
		})
	}()
	for range 4 {
		<-began
	}
	figures(4, 4, 0)
	if got := r.figures()["lock.shards.held orders\uFFFD"]; got != 4 {
		t.Errorf("lock.shards.held is %d", got)
	}
	cancel()
	<-ended
	figures(0, 4, 4)
}

// The code of the page for shards.
func observeShards(registry prometheus.Registerer, meter metric.Meter, set *shard.Set) error {
	registry.MustRegister(promholdfast.NewShardCollector(set))
	registration, err := otelholdfast.ObserveShards(meter, set)
	_ = registration
	return err
}

package observing_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// gather returns what a scrape of collectors gets.
func gather(t *testing.T, collectors ...prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range families {
		out[f.GetName()] = f
	}
	return out
}

// sum adds up the series of a family; of a histogram, how many values they have.
func sum(f *dto.MetricFamily) (total float64) {
	for _, m := range f.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return total
}

// All calls of a run with contention are counted exactly, and nothing is held or waits at the end.
func TestPrometheusIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := promholdfast.NewObserver()
		want := contend(t, observer)
		got := gather(t, observer)
		outcome := map[telemetry.Outcome]float64{}
		for _, m := range got["holdfast_acquisitions_total"].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "outcome" {
					outcome[telemetry.Outcome(label.GetValue())] += m.GetCounter().GetValue()
				}
			}
		}
		exact(t, want, map[string]float64{
			"acquisitions": sum(got["holdfast_acquisitions_total"]), "waits": sum(got["holdfast_wait_seconds"]),
			"hold times": sum(got["holdfast_hold_seconds"]), "losses": sum(got["holdfast_losses_total"]),
			"holds": sum(got["holdfast_holds"]), "waiters": sum(got["holdfast_waiters"]),
		}, outcome)
	})
}

func TestPrometheusCountsLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := promholdfast.NewObserver()
		server := holdfasttest.Start(t)
		lease, err := server.Client(&holdfast.Config{Observer: observer}).Mutex("order:42").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server.Lose(lease)
		synctest.Wait()
		if got := gather(t, observer); sum(got["holdfast_losses_total"]) != 1 || sum(got["holdfast_holds"]) != 0 {
			t.Errorf("after the loss: %v", got)
		}
	})
}

// A Collector tells of all processes, by class, and asks the server no more often than it may.
func TestCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		class := func(string) string { return "order" }
		here, there := server.Client(&holdfast.Config{Class: class}), server.Client(nil)
		collector := promholdfast.NewCollector(here, nil)
		lease, err := there.Mutex("order:42").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := there.Mutex("order:43").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		for range 3 { // three processes
			client := server.Client(nil)
			go func() {
				_, err := client.Mutex("order:42").Lock(ctx)
				ended <- err
			}()
		}
		<-time.After(time.Minute)
		for name, want := range map[string]float64{
			"holdfast_names": 2, "holdfast_held_names": 2, "holdfast_queued_waiters": 3, "holdfast_longest_queue": 3,
			"holdfast_oldest_hold_seconds": 60, "holdfast_late_holds": 0, "holdfast_list_success": 1,
		} {
			if got := sum(gather(t, collector)[name]); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		cancel()
		for range 3 {
			<-ended
		}
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
		if got := sum(gather(t, collector)["holdfast_names"]); got != 2 {
			t.Errorf("a second scrape asked the server again: %v names", got)
		}
		<-time.After(15 * time.Second)
		if got := sum(gather(t, collector)["holdfast_names"]); got != 1 {
			t.Errorf("after the release there are %v names, want 1", got)
		}
		server.Silence()
		<-time.After(15 * time.Second)
		got := gather(t, collector)
		if got["holdfast_names"] != nil || sum(got["holdfast_list_success"]) != 0 {
			t.Errorf("while the server is away: %v", got)
		}
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
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "lock.wait_time" {
			theirs = m.Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds
		}
	}
	if len(ours) == 0 || !slices.Equal(ours, theirs) {
		t.Errorf("the boundaries are %v, and %v with OpenTelemetry", ours, theirs)
	}
}

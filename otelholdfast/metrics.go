package otelholdfast

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// boundaries of all histograms, in seconds: from an uncontended pair to a long job.
var boundaries = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
	3600,
}

// metrics are the instruments, and the series of each. Figures that every call changes are counted
// here where that is possible, and told when the SDK asks: a synchronous instrument costs more.
type metrics struct {
	waitTime metric.Float64Histogram
	holdTime metric.Float64Histogram
	losses   metric.Int64Counter
	headroom metric.Float64Histogram
	retries  metric.Int64Counter
	recalls  metric.Float64Histogram

	acquisitions metric.Int64ObservableCounter
	requests     metric.Int64ObservableCounter
	holds        metric.Int64ObservableUpDownCounter
	waiters      metric.Int64ObservableUpDownCounter

	ofLocks    family[lockLabels]
	ofCalls    family[callLabels]
	ofLosses   family[lossLabels]
	ofRequests family[requestLabels]
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	var failures []error
	histogram := func(name, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(boundaries...))
		failures = append(failures, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failures = append(failures, err)
		return c
	}
	observedCounter := func(name, unit, description string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failures = append(failures, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		c, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failures = append(failures, err)
		return c
	}
	m := &metrics{
		waitTime: histogram("lock.wait_time", "Time from the call for a lock to its end."),
		holdTime: histogram("lock.hold_time", "Time from the beginning of a lease to its end."),
		losses:   counter("lock.losses", "{lease}", "Leases that were lost."),
		headroom: histogram("lock.renewal.headroom", "Trust that was left when a renewal was confirmed."),
		retries:  counter("lock.retries", "{request}", "Requests that failed and are tried again."),
		recalls:  histogram("lock.recall_time", "Time in which a retained lock was given back to another process."),

		acquisitions: observedCounter("lock.acquisitions", "{call}", "Calls for a lock that ended."),
		requests:     observedCounter("lock.server.requests", "{request}", "Requests that were sent to a server."),
		holds:        gauge("lock.holds", "{lease}", "Leases that this process has now."),
		waiters:      gauge("lock.waiters", "{caller}", "Callers in this process that wait now."),
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	_, err := meter.RegisterCallback(m.observeFigures, m.acquisitions, m.requests, m.holds, m.waiters)
	return m, err
}

// observeFigures observes the figures that are kept here.
func (m *metrics) observeFigures(_ context.Context, to metric.Observer) error {
	m.ofLocks.forEach(func(s *series) {
		to.ObserveInt64(m.holds, s.holds.Load(), s.option)
		to.ObserveInt64(m.waiters, s.waiters.Load(), s.option)
	})
	m.ofCalls.forEach(func(s *series) { to.ObserveInt64(m.acquisitions, s.ended.Load(), s.option) })
	m.ofRequests.forEach(func(s *series) { to.ObserveInt64(m.requests, s.ended.Load(), s.option) })
	return nil
}

func (m *metrics) countOutcome(e holdfast.Event) {
	lock := m.lockSeries(e)
	if e.Contended {
		lock.waiters.Add(-1)
	}
	outcome := e.Outcome()
	if outcome == telemetry.OutcomeGranted || outcome == telemetry.OutcomePassedOn {
		lock.holds.Add(1)
	}
	call := m.ofCalls.get(callLabels{newLockLabels(e), outcome, e.Contended})
	call.ended.Add(1)
	m.waitTime.Record(e.Context, e.Waited.Seconds(), call.record...)
}

func (m *metrics) recordHold(e holdfast.Event) {
	lock := m.lockSeries(e)
	lock.holds.Add(-1)
	m.holdTime.Record(e.Context, e.Held.Seconds(), lock.record...)
}

func (m *metrics) lockSeries(e holdfast.Event) *series { return m.ofLocks.get(newLockLabels(e)) }

package otelholdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
)

// boundaries of all histograms, in seconds: from an uncontended pair to a long job.
var boundaries = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600,
}

// metrics are the instruments. What every call changes is counted here where that is possible, and
// told when the SDK asks: a synchronous instrument costs more.
type metrics struct {
	waitTime metric.Float64Histogram
	holdTime metric.Float64Histogram
	losses   metric.Int64Counter
	headroom metric.Float64Histogram
	retries  metric.Int64Counter

	acquisitions metric.Int64ObservableCounter
	requests     metric.Int64ObservableCounter
	holds        metric.Int64ObservableUpDownCounter
	waiters      metric.Int64ObservableUpDownCounter

	sets *sets
}

// sets are the attributes that were made.
type sets struct {
	mu   sync.RWMutex
	made map[labels]*labelled
}

func newMetrics(meter metric.Meter) (metrics, error) {
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
	m := metrics{
		waitTime: histogram("lock.wait_time", "Time from the call for a lock to its end."),
		holdTime: histogram("lock.hold_time", "Time from the beginning of a lease to its end."),
		losses:   counter("lock.losses", "{lease}", "Leases that were lost."),
		headroom: histogram("lock.renewal.headroom", "Trust that was left when a renewal was confirmed."),
		retries:  counter("lock.retries", "{request}", "Requests that failed and are tried again."),
		sets:     &sets{made: make(map[labels]*labelled)},
	}
	return m, errors.Join(errors.Join(failures...), m.observables(meter))
}

// observables are the instruments whose figures are asked for.
func (m *metrics) observables(meter metric.Meter) error {
	var failures [5]error
	m.acquisitions, failures[0] = meter.Int64ObservableCounter("lock.acquisitions", metric.WithUnit("{call}"),
		metric.WithDescription("Calls for a lock that ended."))
	m.holds, failures[1] = meter.Int64ObservableUpDownCounter("lock.holds", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that this process has now."))
	m.waiters, failures[2] = meter.Int64ObservableUpDownCounter("lock.waiters", metric.WithUnit("{caller}"),
		metric.WithDescription("Callers in this process that wait now."))
	m.requests, failures[3] = meter.Int64ObservableCounter("lock.server.requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that were sent to a server."))
	if err := errors.Join(failures[:]...); err != nil {
		return err
	}
	_, failures[4] = meter.RegisterCallback(m.tell, m.acquisitions, m.requests, m.holds, m.waiters)
	return failures[4]
}

// tell tells the figures that are kept here.
func (m *metrics) tell(_ context.Context, to metric.Observer) error {
	m.sets.mu.RLock()
	defer m.sets.mu.RUnlock()
	for l, series := range m.sets.made {
		switch {
		case l.outcome != "":
			to.ObserveInt64(m.acquisitions, series.calls.Load(), series.option)
		case l.request != "":
			to.ObserveInt64(m.requests, series.calls.Load(), series.option)
		case l.reason == "":
			to.ObserveInt64(m.holds, series.holds.Load(), series.option)
			to.ObserveInt64(m.waiters, series.waiters.Load(), series.option)
		}
	}
	return nil
}

func (m *metrics) waiting(e holdfast.Event) {
	m.plain(e).waiters.Add(1)
}

func (m *metrics) ended(e holdfast.Event) {
	plain := m.plain(e)
	if e.Contended {
		plain.waiters.Add(-1)
	}
	outcome := e.Outcome()
	if outcome == holdfast.OutcomeGranted || outcome == holdfast.OutcomePassedOn {
		plain.holds.Add(1)
	}
	by := m.sets.labelled(labels{kind: e.LockKind, class: e.Class, outcome: outcome, contended: e.Contended})
	by.calls.Add(1)
	m.waitTime.Record(e.Context, seconds(e.Waited), by.record...)
}

func (m *metrics) renewed(e holdfast.Event) {
	m.headroom.Record(e.Context, seconds(e.Headroom), m.plain(e).record...)
}

func (m *metrics) retried(e holdfast.Event) {
	m.retries.Add(e.Context, 1, m.plain(e).add...)
}

func (m *metrics) requested(r holdfast.Request) {
	m.sets.labelled(labels{request: r.Op, answer: r.Outcome}).calls.Add(1)
}

func (m *metrics) released(e holdfast.Event) {
	plain := m.plain(e)
	plain.holds.Add(-1)
	m.holdTime.Record(e.Context, seconds(e.Held), plain.record...)
}

func (m *metrics) lost(e holdfast.Event, reason string) {
	m.released(e)
	m.losses.Add(e.Context, 1, m.sets.labelled(labels{kind: e.LockKind, class: e.Class, reason: reason}).add...)
}

// labels are the attributes of one series. Empty ones are absent.
type labels struct {
	kind      string
	class     string
	outcome   holdfast.Outcome
	contended bool // told with the outcome
	reason    string
	request   string                  // of requests, which have no other attributes but the answer
	answer    holdfast.RequestOutcome // told with the request
}

// A labelled is a set of attributes as the instruments take it, and the figures that are kept here.
type labelled struct {
	option metric.MeasurementOption
	add    []metric.AddOption
	record []metric.RecordOption

	calls, holds, waiters atomic.Int64
}

// plain has the kind and the class alone.
func (m *metrics) plain(e holdfast.Event) *labelled {
	return m.sets.labelled(labels{kind: e.LockKind, class: e.Class})
}

// labelled makes a set once. There are few: kinds, outcomes and reasons times the classes, which
// are bounded.
func (s *sets) labelled(l labels) *labelled {
	s.mu.RLock()
	found := s.made[l]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	option := metric.WithAttributeSet(attribute.NewSet(l.attributes()...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[l] == nil {
		s.made[l] = &labelled{option: option, add: []metric.AddOption{option}, record: []metric.RecordOption{option}}
	}
	return s.made[l]
}

// attributes are those of a series.
func (l labels) attributes() []attribute.KeyValue {
	if l.request != "" {
		return []attribute.KeyValue{
			attribute.String("lock.request", l.request), attribute.String("lock.request.outcome", string(l.answer)),
		}
	}
	out := []attribute.KeyValue{attribute.String("lock.kind", l.kind)}
	if l.class != "" {
		out = append(out, attribute.String("lock.class", l.class))
	}
	if l.outcome != "" {
		out = append(out, attribute.String("lock.outcome", string(l.outcome)), attribute.Bool("lock.contended", l.contended))
	}
	if l.reason != "" {
		out = append(out, attribute.String("lock.loss.reason", l.reason))
	}
	return out
}

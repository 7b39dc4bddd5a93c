package promholdfast

import (
	"errors"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// buckets of all histograms, in seconds: from an uncontended pair to a long job.
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
	3600,
}

// An Observer is a holdfast.Observer, and a prometheus.Collector of what it observed. It is safe
// for concurrent use, also by several clients.
type Observer struct {
	waits        *prometheus.HistogramVec
	holdTimes    *prometheus.HistogramVec
	acquisitions *prometheus.CounterVec
	holds        *prometheus.GaugeVec
	waiters      *prometheus.GaugeVec
	losses       *prometheus.CounterVec
	headroom     *prometheus.HistogramVec
	retries      *prometheus.CounterVec
	recalls      *prometheus.HistogramVec
	requests     *prometheus.CounterVec

	locks seriesMap[lockKey, *lockSeries]
	calls seriesMap[callKey, *callSeries]
	sent  seriesMap[telemetry.Request, prometheus.Counter]
}

var (
	_ telemetry.RequestObserver = (*Observer)(nil)
	_ prometheus.Collector      = (*Observer)(nil)
)

// NewObserver makes an Observer. Its user registers it.
func NewObserver() *Observer {
	of := []string{"kind", "class"}
	ended := []string{"kind", "class", "outcome", "contended"}
	histogram := func(name, help string, labels []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, of)
	}
	return &Observer{
		waits:        histogram("holdfast_wait_seconds", "Time from the call for a lock to its end.", ended),
		holdTimes:    histogram("holdfast_hold_seconds", "Time from the beginning of a lease to its end.", of),
		acquisitions: counter("holdfast_acquisitions_total", "Calls for a lock that ended.", ended),
		holds:        gauge("holdfast_holds", "Leases that this process has now."),
		waiters:      gauge("holdfast_waiters", "Callers in this process that wait now."),
		losses:       counter("holdfast_losses_total", "Leases that were lost.", []string{"kind", "class", "reason"}),
		headroom: histogram(
			"holdfast_renewal_headroom_seconds", "Trust that was left when a renewal was confirmed.", of),
		retries: counter("holdfast_retries_total", "Requests that failed and are tried again.", of),
		recalls: histogram("holdfast_recall_seconds", "Time in which a retained lock was given back to another process.",
			of),
		requests: counter("holdfast_server_requests_total", "Requests that were sent to a server.",
			[]string{"op", "outcome"}),
	}
}

// Observe implements holdfast.Observer.
func (o *Observer) Observe(e holdfast.Event) {
	lock := o.locks.get(lockKey{e.LockKind, e.Class}, o.newLockSeries)
	switch e.Kind {
	case holdfast.EventWaiting:
		lock.waiters.Inc()
	case holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRefused, holdfast.EventGaveUp:
		o.countOutcome(e, lock)
	case holdfast.EventRenewed:
		lock.headroom.Observe(e.Headroom.Seconds())
	case holdfast.EventRetried:
		lock.retries.Inc()
	case holdfast.EventRecalled:
		lock.recalls.Observe(e.Held.Seconds())
	case holdfast.EventReleased:
		lock.recordHold(e)
	case holdfast.EventLost:
		lock.recordHold(e)
		o.losses.WithLabelValues(e.LockKind, e.Class, lossReason(e.Err)).Inc()
	}
}

// ObserveRequest implements telemetry.RequestObserver.
func (o *Observer) ObserveRequest(r telemetry.Request) {
	o.sent.get(r, func(r telemetry.Request) prometheus.Counter {
		return o.requests.WithLabelValues(r.Op, string(r.Outcome))
	}).Inc()
}

// countOutcome counts a call that ended.
func (o *Observer) countOutcome(e holdfast.Event, lock *lockSeries) {
	outcome := e.Outcome()
	if e.Contended {
		lock.waiters.Dec()
	}
	if outcome == telemetry.OutcomeGranted || outcome == telemetry.OutcomePassedOn {
		lock.holds.Inc()
	}
	call := o.calls.get(callKey{lockKey{e.LockKind, e.Class}, outcome, e.Contended}, o.newCallSeries)
	call.acquisitions.Inc()
	call.waits.Observe(e.Waited.Seconds())
}

// lossReason returns how a lease was lost, in a word.
func lossReason(err error) string {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) {
		return "other"
	}
	return lost.Reason.Code()
}

// A seriesMap has the series that were made, by what tells them apart: a look at the labels of each
// event would cost more than all else.
type seriesMap[K comparable, S any] struct {
	mu   sync.RWMutex
	made map[K]S
}

func (m *seriesMap[K, S]) get(key K, make func(K) S) S {
	m.mu.RLock()
	found, ok := m.made[key]
	m.mu.RUnlock()
	if ok {
		return found
	}
	found = make(key) // several goroutines make the same one
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = map[K]S{}
	}
	m.made[key] = found
	return found
}

// A lockKey names the series of a kind and a class, and lockSeries has them.
type lockKey struct{ kind, class string }

type lockSeries struct {
	holdTimes prometheus.Observer
	holds     prometheus.Gauge
	waiters   prometheus.Gauge
	headroom  prometheus.Observer
	retries   prometheus.Counter
	recalls   prometheus.Observer
}

func (o *Observer) newLockSeries(key lockKey) *lockSeries {
	return &lockSeries{
		holdTimes: o.holdTimes.WithLabelValues(key.kind, key.class),
		holds:     o.holds.WithLabelValues(key.kind, key.class),
		waiters:   o.waiters.WithLabelValues(key.kind, key.class),
		headroom:  o.headroom.WithLabelValues(key.kind, key.class),
		retries:   o.retries.WithLabelValues(key.kind, key.class),
		recalls:   o.recalls.WithLabelValues(key.kind, key.class),
	}
}

// recordHold counts a lease that ended.
func (l *lockSeries) recordHold(e holdfast.Event) {
	l.holds.Dec()
	l.holdTimes.Observe(e.Held.Seconds())
}

// A callKey names the series of calls that ended alike.
type callKey struct {
	lock      lockKey
	outcome   telemetry.Outcome
	contended bool
}

type callSeries struct {
	waits        prometheus.Observer
	acquisitions prometheus.Counter
}

func (o *Observer) newCallSeries(key callKey) *callSeries {
	labels := []string{key.lock.kind, key.lock.class, string(key.outcome), strconv.FormatBool(key.contended)}
	return &callSeries{o.waits.WithLabelValues(labels...), o.acquisitions.WithLabelValues(labels...)}
}

// Describe implements prometheus.Collector.
func (o *Observer) Describe(out chan<- *prometheus.Desc) {
	for _, c := range o.collectors() {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (o *Observer) Collect(out chan<- prometheus.Metric) {
	for _, c := range o.collectors() {
		c.Collect(out)
	}
}

func (o *Observer) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		o.waits, o.holdTimes, o.acquisitions, o.holds, o.waiters, o.losses, o.headroom, o.retries,
		o.recalls, o.requests}
}

package otelholdfast

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// An Observer is a holdfast.Observer that records metrics and spans. It is safe for concurrent use,
// also by several clients.
type Observer struct {
	metrics *metrics
	tracer  trace.Tracer
}

var _ telemetry.RequestObserver = (*Observer)(nil)

// Options say where figures and spans go. Nil or zero fields mean the defaults.
type Options struct {
	Meters  metric.MeterProvider // default: the global one
	Tracers trace.TracerProvider // default: the global one
}

const scope = "github.com/holdfast-go/holdfast/otelholdfast"

// New makes an Observer. Nil options mean the defaults. The error is that of the meter, which
// refused an instrument.
func New(options *Options) (*Observer, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	metrics, err := newMetrics(o.Meters.Meter(scope))
	if err != nil {
		return nil, err
	}
	return &Observer{metrics: metrics, tracer: o.Tracers.Tracer(scope)}, nil
}

// Observe implements holdfast.Observer.
func (o *Observer) Observe(e holdfast.Event) {
	m := o.metrics
	switch e.Kind {
	case holdfast.EventWaiting:
		m.lockSeries(e).waiters.Add(1)
	case holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRefused, holdfast.EventGaveUp:
		m.countOutcome(e)
		o.traceOutcome(e)
	case holdfast.EventRenewed:
		m.headroom.Record(e.Context, e.Headroom.Seconds(), m.lockSeries(e).record...)
	case holdfast.EventRetried:
		m.retries.Add(e.Context, 1, m.lockSeries(e).add...)
	case holdfast.EventRecalled:
		m.recalls.Record(e.Context, e.Held.Seconds(), m.lockSeries(e).record...)
	case holdfast.EventReleased:
		m.recordHold(e)
		o.traceEnd(e, "lock.released")
	case holdfast.EventLost:
		m.recordHold(e)
		m.losses.Add(e.Context, 1, m.ofLosses.get(lossLabels{newLockLabels(e), lossReason(e.Err)}).add...)
		o.traceEnd(e, "lock.lost")
	}
}

// ObserveRequest implements telemetry.RequestObserver.
func (o *Observer) ObserveRequest(r telemetry.Request) {
	o.metrics.ofRequests.get(requestLabels{r.Op, r.Outcome}).ended.Add(1)
}

// lossReason returns how a lease was lost, in a word.
func lossReason(err error) string {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) {
		return "other"
	}
	return lost.Reason.Code()
}

package otelholdfast

import (
	"errors"
	"time"

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

// New makes an Observer. Nil options mean the defaults. The error is that of the meter, which
// refused an instrument.
func New(options *Options) (*Observer, error) {
	o := options.settled()
	metrics, err := newMetrics(o.Meters.Meter(scope))
	if err != nil {
		return nil, err
	}
	return &Observer{metrics: metrics, tracer: o.Tracers.Tracer(scope)}, nil
}

// Observe implements holdfast.Observer.
func (o *Observer) Observe(e holdfast.Event) {
	switch e.Kind {
	case holdfast.EventWaiting:
		o.metrics.countWaiting(e)
	case holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRefused, holdfast.EventGaveUp:
		o.metrics.countOutcome(e)
		o.traceOutcome(e)
	case holdfast.EventRenewed:
		o.metrics.recordRenewal(e)
	case holdfast.EventRetried:
		o.metrics.countRetry(e)
	case holdfast.EventReleased:
		o.metrics.recordHold(e)
		o.traceRelease(e)
	case holdfast.EventLost:
		o.metrics.countLoss(e, lossReason(e.Err))
		o.traceLoss(e)
	}
}

// ObserveRequest implements telemetry.RequestObserver.
func (o *Observer) ObserveRequest(r telemetry.Request) { o.metrics.countRequest(r) }

// lossReason returns how a lease was lost, in a word.
func lossReason(err error) string {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) {
		return "other"
	}
	return lost.Reason.Code()
}

// seconds returns a time in the unit of all times.
func seconds(d time.Duration) float64 { return d.Seconds() }

package otelholdfast

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
)

// An Observer is a holdfast.Observer that records metrics and spans. It is safe for concurrent use,
// also by several clients.
type Observer struct {
	classes classes
	metrics metrics
	tracer  trace.Tracer
}

var _ holdfast.Observer = (*Observer)(nil)

// New makes an Observer. Nil options mean the defaults. The error is that of the meter, which
// refused an instrument.
func New(options *Options) (*Observer, error) {
	o := options.settled()
	metrics, err := newMetrics(o.Meters.Meter(scope))
	if err != nil {
		return nil, err
	}
	return &Observer{classes: classes{of: o.Class}, metrics: metrics, tracer: o.Tracers.Tracer(scope)}, nil
}

// Observe implements holdfast.Observer.
func (o *Observer) Observe(e holdfast.Event) {
	class := o.classes.class(e.Name)
	switch e.Kind {
	case holdfast.EventWaiting:
		o.metrics.waiting(e, class)
	case holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRefused, holdfast.EventGaveUp:
		outcome := outcomeOf(e)
		o.metrics.ended(e, class, outcome)
		o.spanEnded(e, class, outcome)
	case holdfast.EventRenewed:
		o.metrics.renewed(e, class)
	case holdfast.EventRetried:
		o.metrics.retried(e, class)
	case holdfast.EventReleased:
		o.metrics.released(e, class)
		o.spanReleased(e)
	case holdfast.EventLost:
		o.metrics.lost(e, class, reasonOf(e.Err))
		o.spanLost(e)
	}
}

// An outcome is how a call ended.
type outcome string

const (
	granted  outcome = "granted"
	passedOn outcome = "passed_on"
	refused  outcome = "refused"
	gaveUp   outcome = "gave_up"
	failed   outcome = "error"
)

// outcomeOf tells the end of a time and a lock that is held from an error.
func outcomeOf(e holdfast.Event) outcome {
	var waited *holdfast.WaitError
	switch {
	case e.Kind == holdfast.EventGranted:
		return granted
	case e.Kind == holdfast.EventPassed:
		return passedOn
	case errors.Is(e.Err, holdfast.ErrUnavailable):
		return failed
	case errors.As(e.Err, &waited):
		return gaveUp
	case !errors.Is(e.Err, holdfast.ErrHeld):
		return failed
	case e.Kind == holdfast.EventGaveUp: // its polling ran out
		return gaveUp
	default:
		return refused
	}
}

// reasonOf is the short form of a holdfast.LossReason, for an attribute.
func reasonOf(err error) string {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) {
		return "other"
	}
	switch lost.Reason {
	case holdfast.LossExpired:
		return "expired"
	case holdfast.LossGone:
		return "gone"
	case holdfast.LossMaxHold:
		return "max_hold"
	case holdfast.LossForeign:
		return "foreign"
	case holdfast.LossReplaced:
		return "replaced"
	default:
		return "other"
	}
}

// seconds is the unit of all times.
func seconds(d time.Duration) float64 { return d.Seconds() }

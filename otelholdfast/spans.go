package otelholdfast

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// traceOutcome records how a call ended. The span of a wait is made when the wait is over, as only
// then it is known that the call had to wait, and for how long.
func (o *Observer) traceOutcome(e holdfast.Event) {
	caller := trace.SpanFromContext(e.Context)
	if e.Contended {
		o.traceWait(e)
	}
	if e.Token != 0 && caller.IsRecording() {
		caller.AddEvent("lock.acquired", trace.WithAttributes(leaseAttributes(e)...))
	}
}

func (o *Observer) traceWait(e holdfast.Event) {
	end := time.Now()
	_, span := o.tracer.Start(
		e.Context, "lock.wait", append(linkOptions(e), trace.WithTimestamp(end.Add(-e.Waited)))...)
	defer span.End(trace.WithTimestamp(end))
	if !span.IsRecording() {
		return
	}
	by := callLabels{newLockLabels(e), e.Outcome(), true}
	span.SetAttributes(append(by.attributes(), leaseAttributes(e)...)...)
	if e.Holder != "" {
		span.SetAttributes(attribute.String("lock.holder", validText(e.Holder)))
	}
	if e.HolderToken != 0 {
		span.SetAttributes(attribute.Int64("lock.holder.token", e.HolderToken))
	}
	if e.Err != nil {
		setError(span, e.Err)
	}
}

// traceEnd adds the end of a lease to the caller's span. A loss has an error.
func (o *Observer) traceEnd(e holdfast.Event, name string) {
	caller := trace.SpanFromContext(e.Context)
	if !caller.IsRecording() {
		return
	}
	caller.AddEvent(name,
		trace.WithAttributes(append(leaseAttributes(e), attribute.Float64("lock.held", e.Held.Seconds()))...))
	if e.Kind == holdfast.EventLost {
		setError(caller, e.Err)
	}
}

// setError sets the error of a span. An error may quote what a server said, which may be any bytes.
func setError(span trace.Span, err error) {
	said := validText(err.Error())
	if said != err.Error() {
		err = errors.New(said)
	}
	span.RecordError(err)
	span.SetStatus(codes.Error, said)
}

func leaseAttributes(e holdfast.Event) []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("lock.name", validText(e.Name))}
	if e.Token != 0 {
		out = append(out, attribute.Int64("lock.token", e.Token))
	}
	return out
}

// validText returns valid UTF-8, as exporters require: a name, a label and an error may have any
// bytes. A class is valid already.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

var _ telemetry.Tracer = (*Observer)(nil)

const (
	traceparent       = "traceparent"
	traceparentLength = len("00-") + 2*len(trace.TraceID{}) + len("-") + 2*len(trace.SpanID{}) + len("-01")
)

// Trace implements telemetry.Tracer: the W3C traceparent of the caller's span, and "" if the caller
// has none.
func (o *Observer) Trace(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return ""
	}
	id, parent := span.TraceID(), span.SpanID()
	text := append(make([]byte, 0, traceparentLength), "00-"...)
	text = append(hex.AppendEncode(text, id[:]), '-')
	text = append(hex.AppendEncode(text, parent[:]), '-')
	return string(hex.AppendEncode(text, []byte{byte(span.TraceFlags() & trace.FlagsSampled)}))
}

// linkOptions returns a link to the span of the holder that an event names. Any client may have
// written anything there: what is no traceparent makes no link.
func linkOptions(e holdfast.Event) []trace.SpanStartOption {
	if e.HolderTrace == "" {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: e.HolderTrace})
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return nil
	}
	return []trace.SpanStartOption{trace.WithLinks(trace.Link{SpanContext: span})}
}

package otelholdfast

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

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

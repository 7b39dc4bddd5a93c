package otelholdfast

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Options say where figures and spans go. Nil or zero fields mean the defaults.
type Options struct {
	Meters  metric.MeterProvider // default: the global one
	Tracers trace.TracerProvider // default: the global one
}

const scope = "github.com/holdfast-go/holdfast/otelholdfast"

// settled returns options without zero fields.
func (o *Options) settled() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Meters == nil {
		out.Meters = otel.GetMeterProvider()
	}
	if out.Tracers == nil {
		out.Tracers = otel.GetTracerProvider()
	}
	return out
}

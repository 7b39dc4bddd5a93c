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

	// Class makes the attribute lock.class of the name of a lock. It must have few results, such as
	// "order" for all of "order:42". It is called for each event, by many goroutines at once.
	// Default: none.
	Class func(name string) string
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
	if out.Class == nil {
		out.Class = func(string) string { return "" }
	}
	return out
}

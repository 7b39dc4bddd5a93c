// Package otel tests package otelholdfast with the SDK of OpenTelemetry: its figures against counts
// of the same run, and its spans.
package otel

module github.com/holdfast-go/holdfast/otelholdfast

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	go.opentelemetry.io/otel v1.36.0
	go.opentelemetry.io/otel/metric v1.36.0
	go.opentelemetry.io/otel/trace v1.36.0
)

require (
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
)

replace github.com/holdfast-go/holdfast => ../

package observing_test

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/profholdfast"
	"github.com/holdfast-go/holdfast/promholdfast"
)

// pageConfig returns the code of docs/observing.md.
func pageConfig(registry prometheus.Registerer) *holdfast.Config {
	observer := promholdfast.NewObserver()
	registry.MustRegister(observer)
	config := &holdfast.Config{
		Observer: observer,
		Class:    func(name string) string { class, _, _ := strings.Cut(name, ":"); return class },
	}
	return config
}

// The code of the page for a profile beside other metrics.
func Example_profile() {
	observer, config := promholdfast.NewObserver(), &holdfast.Config{}
	profile := profholdfast.New()
	config.Observer = holdfast.Observers(observer, profile)
	http.Handle("/debug/holdfast", profile)
}

package observing_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
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

// The code of docs/observing.md counts a call under the class of its name.
func TestPageMetricsHaveTheClass(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	order := holdfasttest.Start(t).Client(pageConfig(registry)).Mutex("order:42")
	if err := order.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	all := scrape(t, registry)["holdfast_acquisitions_total"].GetMetric()
	if len(all) != 1 || !strings.Contains(all[0].String(), `value:"order"`) {
		t.Errorf("%v, want one series of the class order", all)
	}
}

// The code of the page for a profile beside other metrics.
func Example_profile() {
	observer, config := promholdfast.NewObserver(), &holdfast.Config{}
	profile := profholdfast.New()
	config.Observer = holdfast.Observers(observer, profile)
	http.Handle("/debug/holdfast", profile)
}

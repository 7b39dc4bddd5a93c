package observing_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

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

// The code of the page for a profile beside other metrics.
func Example_profile() {
	observer, config := promholdfast.NewObserver(), &holdfast.Config{}
	profile := profholdfast.New()
	config.Observer = holdfast.Observers(observer, profile)
	http.Handle("/debug/holdfast", profile)
}

// badName is a name as any client may lock it (trap 27), and badClass the label that the Class of
// docs/observing.md makes of it.
const (
	badName  = "\xff\xfe:1"
	badClass = "\uFFFD"
)

// A name, a label and an error that are no UTF-8 reach Prometheus and a collector of OpenTelemetry:
// nothing panics, the call is counted, and the export is not refused.
func TestBytesThatAreNoText(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		registry, server := prometheus.NewPedanticRegistry(), holdfasttest.Start(t)
		config := pageConfig(registry)
		config.Observer = holdfast.Observers(config.Observer, r.observer)
		client := server.Client(config)
		registry.MustRegister(promholdfast.NewCollector(client, nil))
		held := lock(t.Context(), t, server.Client(&holdfast.Config{Label: "\xff"}), badName)
		exactlyOne := func(name string) {
			t.Helper()
			all := scrape(t, registry)[name].GetMetric()
			if len(all) != 1 || !strings.Contains(all[0].String(), badClass) {
				t.Errorf("%s has not one series of the class %q, but %v", name, badClass, all)
			}
		}
		exactlyOne("holdfast_held_names")
		r.wait(t, client, held)
		exactlyOne("holdfast_acquisitions_total")
	})
	ctx, parent := r.tracers.Tracer("test").Start(t.Context(), "work")
	r.observer.Observe(holdfast.Event{Kind: holdfast.EventLost, Name: badName, LockKind: "mutex", Context: ctx,
		Err: errors.New("\xff")})
	parent.End()
	for _, span := range r.spans.GetSpans() {
		if said := fmt.Sprint(span); !utf8.ValidString(said) { // an export would fail
			t.Errorf("the span %q is no UTF-8", said)
		}
	}
}

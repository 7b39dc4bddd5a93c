package storetest

import (
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// events is an observer that remembers all events.
type events struct {
	t *testing.T

	mu   sync.Mutex
	seen []holdfast.Event
}

func newEvents(t *testing.T) *events { return &events{t: t} }

// Observe implements holdfast.Observer.
func (o *events) Observe(event holdfast.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, event)
}

func (o *events) of(kind holdfast.EventKind) []holdfast.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.seen), func(e holdfast.Event) bool { return e.Kind != kind })
}

// await waits until there are n events of a kind.
func (o *events) await(kind holdfast.EventKind, n int) []holdfast.Event {
	o.t.Helper()
	if !soon(func() bool { return len(o.of(kind)) >= n }) {
		o.t.Fatalf("never: %d events %q", n, kind)
	}
	return o.of(kind)
}

package otelholdfast

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// labels are the attributes of one series.
type labels interface {
	comparable
	attributes() []attribute.KeyValue
}

// A series is a set of attributes as the instruments take it, and the figures that are kept here.
type series struct {
	option metric.MeasurementOption
	add    []metric.AddOption
	record []metric.RecordOption

	holds, waiters atomic.Int64 // of locks
	ended          atomic.Int64 // calls or requests
}

// A family is the series whose attributes have the same keys. Each is made once. There are few:
// kinds, outcomes and reasons times the classes, which are bounded.
type family[L labels] struct {
	mu   sync.RWMutex
	made map[L]*series
}

// get returns the series that has these labels.
func (f *family[L]) get(l L) *series {
	f.mu.RLock()
	found := f.made[l]
	f.mu.RUnlock()
	if found != nil {
		return found
	}
	option := metric.WithAttributeSet(attribute.NewSet(l.attributes()...))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil {
		f.made = make(map[L]*series)
	}
	if f.made[l] == nil {
		f.made[l] = &series{option: option, add: []metric.AddOption{option}, record: []metric.RecordOption{option}}
	}
	return f.made[l]
}

// forEach calls a function with all series.
func (f *family[L]) forEach(do func(*series)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, s := range f.made {
		do(s)
	}
}

// lockLabels are those of a kind of lock, and the class of its name.
type lockLabels struct{ kind, class string }

func newLockLabels(e holdfast.Event) lockLabels { return lockLabels{e.LockKind, e.Class} }

func (l lockLabels) attributes() []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("lock.kind", l.kind)}
	if l.class != "" {
		out = append(out, attribute.String("lock.class", l.class))
	}
	return out
}

// callLabels are those of calls that ended.
type callLabels struct {
	lock      lockLabels
	outcome   telemetry.Outcome
	contended bool
}

func (l callLabels) attributes() []attribute.KeyValue {
	return append(l.lock.attributes(),
		attribute.String("lock.outcome", string(l.outcome)), attribute.Bool("lock.contended", l.contended))
}

// lossLabels are those of leases that were lost.
type lossLabels struct {
	lock   lockLabels
	reason string
}

func (l lossLabels) attributes() []attribute.KeyValue {
	return append(l.lock.attributes(), attribute.String("lock.loss.reason", l.reason))
}

// requestLabels are those of requests to a server.
type requestLabels struct {
	op      string
	outcome telemetry.RequestOutcome
}

func (l requestLabels) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("lock.request", l.op), attribute.String("lock.request.outcome", string(l.outcome)),
	}
}

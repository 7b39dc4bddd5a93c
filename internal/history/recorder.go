package history

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Config is what a Recorder needs to know.
type Config struct {
	Prefix  string // of all keys, without braces
	Process string // names this client
	Limit   int    // about how many entries of each class are kept
	Logger  *slog.Logger
}

// A Recorder writes and reads the history at one store, or at all masters of a quorum. All methods
// are safe for concurrent use.
type Recorder struct {
	config  Config
	writers []*writer
	number  atomic.Int64 // of the last entry
}

// New makes a Recorder. It sends nothing and starts nothing.
func New(stores []wire.Store, config Config) *Recorder {
	r := &Recorder{config: config}
	for _, s := range stores {
		r.writers = append(r.writers, &writer{store: s, limit: config.Limit, logger: config.Logger,
			full: make(chan struct{}, 1), closing: make(chan struct{}), failing: make(map[string]int),
			grants: make(map[leaseKey]int)})
	}
	return r
}

// Add has an entry written. Its At is of the local clock. Add neither blocks nor fails.
func (r *Recorder) Add(class string, e lockinfo.Entry) {
	next := record{Entry: e, key: r.key(class), process: r.config.Process, number: r.number.Add(1)}
	for _, w := range r.writers {
		w.add(next)
	}
}

func (r *Recorder) key(class string) string {
	return native.HistoryKey(r.config.Prefix, class[:min(len(class), maxText)])
}

// Close writes what waits, until a moment. Later entries are dropped.
func (r *Recorder) Close(until time.Time) {
	for _, w := range r.writers {
		w.close(until)
	}
	for _, w := range r.writers {
		w.await(until)
	}
}

package history

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
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

const (
	// gatherFor is how long a writer gathers entries: a flush for each would cost what a lock does.
	gatherFor = 100 * time.Millisecond

	// maxBatch is how many entries travel in one flush. The server carries them out in one go, and
	// locks wait meanwhile.
	maxBatch = 64

	// manyWaiting is how many entries end the gathering, and maxWaiting how many wait at most.
	manyWaiting = 1024
	maxWaiting  = 4096

	// timeout bounds one flush, and the reading of one page.
	timeout = time.Second
)

// plain makes failures of the replies to plain commands.
var plain = wire.Script{Op: "history"}

// A leaseKey is what tells a lease of a process.
type leaseKey struct {
	name  string
	token int64
}

// A writer writes entries to the streams of one store. One goroutine writes, and lives while
// entries wait.
type writer struct {
	store   wire.Store
	limit   int
	logger  *slog.Logger
	full    chan struct{}  // has one element: many wait, or did
	closing chan struct{}  // closed by close
	failing map[string]int // of each stream that is not written, how many entries were dropped; of the goroutine

	mu      sync.Mutex
	queue   []record
	taken   int              // how many were taken out of the queue
	grants  map[leaseKey]int // those in the queue: the how manieth that came into it
	written chan struct{}    // closed when none waits any more; nil: none waits
	closed  bool
	until   time.Time // of close: nothing is sent later
	dropped int       // entries for which there was no room
	told    int       // of these, how many the logger was told
}

// add queues an entry. If too many wait, it drops the entry.
func (w *writer) add(r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	lease := leaseKey{r.Name, r.Token}
	if i, found := w.grants[lease]; found && i >= w.taken && r.join(&w.queue[i-w.taken]) {
		w.queue[i-w.taken] = r
		return
	}
	if len(w.queue) == maxWaiting {
		w.dropped++
		return
	}
	if r.Kind == lockinfo.EntryGranted {
		w.grants[lease] = w.taken + len(w.queue)
	}
	w.queue = append(w.queue, r)
	if w.written == nil {
		w.written = make(chan struct{})
		go w.writeAll()
	}
	if len(w.queue) == manyWaiting {
		select {
		case w.full <- struct{}{}:
		default:
		}
	}
}

// close ends the gathering, and has what waits written until a moment.
func (w *writer) close(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed, w.until = true, until
		close(w.closing)
	}
}

// await waits until nothing waits to be written, but not past a moment.
func (w *writer) await(until time.Time) {
	w.mu.Lock()
	written := w.written
	w.mu.Unlock()
	if written == nil {
		return
	}
	timer := protocol.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
}

// writeAll writes until nothing waits.
func (w *writer) writeAll() {
	for w.gather() {
		for {
			batch, deadline, last := w.take()
			if w.send(batch, deadline); last {
				break
			}
		}
	}
}

// gather waits until many entries wait, or the first of them have waited for long. It is false if
// none waits: then the goroutine ends.
func (w *writer) gather() bool {
	w.mu.Lock()
	waiting := len(w.queue)
	if waiting == 0 {
		close(w.written)
		w.written, w.queue = nil, nil
		clear(w.grants)
	}
	w.mu.Unlock()
	if waiting > 0 && waiting < manyWaiting {
		timer := protocol.NewTimer(gatherFor)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.full:
		case <-w.closing:
		}
	}
	return waiting > 0
}

// take takes a batch out of the queue. The deadline is that of its flush. The last batch is not
// full: later entries are gathered.
func (w *writer) take() (batch []record, deadline time.Time, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxBatch)
	batch, w.queue = w.queue[:n:n], w.queue[n:]
	w.taken += n
	for i := range batch {
		if lease := (leaseKey{batch[i].Name, batch[i].Token}); w.grants[lease] < w.taken {
			delete(w.grants, lease)
		}
	}
	select {
	case <-w.full: // it was about these
	default:
	}
	if w.dropped >= max(2*w.told, 1) {
		w.told = w.dropped
		w.logger.Warn("holdfast: the history is too slow for its entries", "dropped", w.dropped)
	}
	deadline = time.Now().Add(timeout)
	if w.closed && w.until.Before(deadline) {
		deadline = w.until
	}
	return batch, deadline, n < maxBatch
}

// send writes a batch, and drops what the server does not take.
func (w *writer) send(batch []record, deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if len(batch) == 0 || ctx.Err() != nil {
		return // nothing, or Close has no time left
	}
	requests, now := make([]wire.Request, len(batch)), time.Now()
	for i := range batch {
		args := append(make([]any, 0, 36), "XADD", batch[i].key, "MAXLEN", "~", w.limit, "*")
		requests[i] = wire.Request{Op: plain.Op, Key: batch[i].key, Args: append(args, batch[i].fields(now)...)}
	}
	for i, reply := range w.store.Do(ctx, requests) {
		key := requests[i].Key
		err := failureOf(reply, "", key)
		dropped, failed := w.failing[key]
		switch {
		case err != nil:
			w.failing[key]++
			if !failed {
				w.logger.Warn("holdfast: entries of the history are dropped", "key", key, "error", err)
			}
		case failed:
			delete(w.failing, key)
			w.logger.Info("holdfast: the history is written again", "key", key, "dropped", dropped)
		}
	}
}

// failureOf returns the failure that a reply about a stream tells of; nil: it is an answer.
func failureOf(reply wire.Reply, name, key string) error {
	err := plain.Failure(name, reply, []any{key})
	var foreign *protocol.Foreign
	if errors.As(err, &foreign) {
		foreign.Want = "a stream"
	}
	return wire.At(reply.Node, err)
}

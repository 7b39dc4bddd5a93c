package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The bounds of a dashboard. doc.go tells them.
const (
	pauseFactor = 3 // a poll of d is followed by a pause of at least pauseFactor·d

	// interval is from the beginning of a poll to the end of the next one. It is a little less than
	// a second: a change that a poll just missed is on the page within a second.
	interval = 950 * time.Millisecond

	maxPoll        = 30 * time.Second
	readyEvery     = 5 * time.Second
	maxViewers     = 100
	maxDocuments   = 4 // that are made or sent at a time
	maxNames       = 20_000
	maxMemory      = 64 << 20
	maxChanges     = 1000
	maxChangeBytes = 1 << 20          // of one poll, and less than one change more
	maxGone        = 10_000           // names that are gone, for streams that are behind
	maxPart        = 64 << 10         // bytes of rows in one update, and less than one row more
	pingInterval   = 15 * time.Second // a stream that says nothing for longer says so
	writeTimeout   = 15 * time.Second
)

// A hub polls all names while somebody views, once for all of them.
type hub struct {
	client lockClient

	mu       sync.Mutex
	viewers  int
	run      *run      // nil: nobody views
	earlier  *run      // the run before, which may be ending
	nextPoll time.Time // no poll begins earlier
}

// A run is the time from the first viewer to the leaving of the last.
type run struct {
	cancel context.CancelFunc
	done   chan struct{}

	// hub.mu guards these.
	poll      int           // the number of the last poll; 0: there was none
	wake      chan struct{} // closed by the next poll
	names     map[string]*entry
	rows      []*entry // of names, in the order in which a stream sends them
	status    status
	changes   changes    // of the last poll
	gone      []goneName // the last ones
	forgotten int        // the last poll of which gone lacks some
}

// A goneName is a name that a poll did not find any more.
type goneName struct {
	poll int
	id   uint64
}

// changes are what differs between two snapshots, for people.
type changes struct {
	list    []json.RawMessage
	omitted int // those for which there was no room
}

// status is what a poll finds beside the names.
type status struct {
	Version int               `json:"version"`
	At      time.Time         `json:"at"`                // of the last poll that succeeded, by the server's clock
	Took    float64           `json:"took_seconds"`      // of the last poll
	More    int               `json:"more"`              // names that are not shown
	Error   string            `json:"error,omitempty"`   // of the last poll: what is shown is older
	Ready   string            `json:"ready"`             // empty: the servers are ready
	Masters []lockinfo.Master `json:"masters,omitempty"` // of a quorum, whether or not there is a name
}

func newHub(client lockClient) *hub { return &hub{client: client} }

var errFull = errors.New("100 pages are open already")

// addViewer adds a viewer. The first one starts the polls.
func (h *hub) addViewer() (*run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers == maxViewers {
		return nil, errFull
	}
	h.viewers++
	if h.run == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.run = &run{cancel: cancel, done: make(chan struct{}), wake: make(chan struct{})}
		go h.pollUntil(ctx, h.run, h.earlier)
	}
	return h.run, nil
}

// removeViewer takes a viewer away. The last one waits until the polls have ended.
func (h *hub) removeViewer() {
	h.mu.Lock()
	h.viewers--
	if h.viewers > 0 {
		h.mu.Unlock()
		return
	}
	last := h.run
	h.run, h.earlier = nil, last
	h.mu.Unlock()
	last.cancel()
	<-last.done
	h.mu.Lock()
	if h.earlier == last {
		h.earlier = nil
	}
	h.mu.Unlock()
}

// pollUntil polls until ctx is over, after the run before has ended.
func (h *hub) pollUntil(ctx context.Context, r, earlier *run) {
	defer close(r.done)
	if earlier != nil {
		<-earlier.done
	}
	h.mu.Lock()
	next := h.nextPoll
	h.mu.Unlock()
	var asked time.Time
	var ready readiness
	for poll := 1; waitUntil(ctx, next); poll++ {
		begin := time.Now()
		if poll == 1 || begin.Sub(asked) >= readyEvery {
			ready, asked = h.askServers(ctx), begin
		}
		now := h.takeSnapshot(ctx, r.names, poll)
		took := time.Since(begin)
		next = begin.Add(max(interval-took, took+pauseFactor*took))
		h.mu.Lock()
		h.nextPoll = next
		if ctx.Err() == nil {
			r.publish(ready, took, now)
		}
		h.mu.Unlock()
	}
}

// readiness is what the servers say of themselves.
type readiness struct {
	problem string // empty: they are ready
	masters []lockinfo.Master
}

// askServers asks the servers whether they are ready, and the masters of a quorum whether they
// count.
func (h *hub) askServers(ctx context.Context) (ready readiness) {
	if err := h.client.Ready(ctx); err != nil {
		ready.problem = err.Error()
	}
	ready.masters, _ = h.client.Quorum(ctx) // or the servers are no quorum, or the client is closed, which List says
	return ready
}

// waitUntil waits for a moment. It returns false if ctx is over.
func waitUntil(ctx context.Context, moment time.Time) bool {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// takeSnapshot reads all names.
func (h *hub) takeSnapshot(ctx context.Context, before map[string]*entry, poll int) snapshot {
	ctx, cancel := context.WithTimeout(ctx, maxPoll)
	defer cancel()
	s := newSnapshot(before, poll)
	for info, err := range h.client.List(ctx, holdfast.ListOptions{}) {
		if err != nil {
			s.err = err
			return s
		}
		s.addName(info)
	}
	s.finish()
	return s
}

// publish wakes the viewers with a snapshot. After a poll that failed, the names stay as they were.
func (r *run) publish(ready readiness, took time.Duration, now snapshot) {
	r.status.Version, r.status.Took, r.status.Error = lockinfo.Version, took.Seconds(), ""
	r.status.Ready, r.status.Masters = ready.problem, ready.masters
	r.poll, r.changes = now.poll, changes{}
	if now.err != nil {
		r.status.Error = now.err.Error()
	} else {
		r.status.More = now.more
		if !now.at.IsZero() {
			r.status.At = now.at.UTC()
		} else {
			r.status.At = time.Now().UTC() // there is no name, so no server said the time
		}
		if r.names != nil {
			r.changes = now.changes
		}
		r.names = now.names
		r.sortRows()
		r.addGone(now)
	}
	close(r.wake)
	r.wake = make(chan struct{})
}

// sortRows puts the rows in the order in which streams send them.
func (r *run) sortRows() {
	r.rows = slices.SortedFunc(maps.Values(r.names), func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.poll, b.poll), cmp.Compare(a.id, b.id))
	})
}

// addGone adds the names that are gone, and forgets the oldest ones.
func (r *run) addGone(now snapshot) {
	for _, id := range now.gone {
		r.gone = append(r.gone, goneName{now.poll, id})
	}
	if most := len(r.gone) - maxGone; most > 0 {
		r.forgotten = r.gone[most-1].poll
		r.gone = slices.Clone(r.gone[most:])
	}
}

// lastNames returns the names of the last poll; nil if there was none. They are not changed any
// more.
func (h *hub) lastNames() map[string]*entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run == nil {
		return nil
	}
	return h.run.names
}

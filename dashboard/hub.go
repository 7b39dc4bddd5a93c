package dashboard

import (
	"cmp"
	"context"
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
	restFactor = 3 // a look of d is followed by a rest of at least restFactor·d

	// interval is from the beginning of a look to the end of the next one. It is a little less than
	// a second: a change that a look just missed is on the page within a second.
	interval = 950 * time.Millisecond

	longest      = 30 * time.Second // that a look may last
	readyEvery   = 5 * time.Second
	mostViewers  = 100
	mostAnswers  = 4 // that are made or sent at a time
	mostNames    = 20_000
	mostBytes    = 64 << 20
	mostChanges  = 1000
	mostTold     = 1 << 20          // bytes of the changes of one look, and less than one change more
	mostGone     = 10_000           // names that are gone, for streams that are behind
	mostPart     = 64 << 10         // bytes of rows in one event, and less than one row more
	pingInterval = 15 * time.Second // a stream that says nothing for longer says so
	patience     = 15 * time.Second // that a write may take
)

// A hub looks at all names while somebody views, once for all of them.
type hub struct {
	client source

	mu      sync.Mutex
	viewers int
	run     *run      // nil: nobody views
	earlier *run      // the run before, which may be ending
	next    time.Time // no look begins earlier
}

// A run is the time from the first viewer to the leaving of the last.
type run struct {
	cancel context.CancelFunc
	done   chan struct{}

	// hub.mu guards these.
	number    int           // of the last look; 0: there was none
	wake      chan struct{} // closed by the next look
	names     map[string]*entry
	rows      []*entry // of names, in the order in which a feed sends them
	status    status
	told      told        // of the last look
	gone      []departure // the last ones
	forgotten int         // the last look that gone lacks some of
}

// A departure is a name that a look did not find any more.
type departure struct {
	number int
	id     uint64
}

// status is what a look tells beside the names.
type status struct {
	Version int               `json:"version"`
	At      time.Time         `json:"at"`                // of the last look that succeeded, by the server's clock
	Took    float64           `json:"took_seconds"`      // of the last look
	More    int               `json:"more"`              // names that are not shown
	Error   string            `json:"error,omitempty"`   // of the last look: what is shown is older
	Ready   string            `json:"ready"`             // empty: the servers are ready
	Masters []lockinfo.Master `json:"masters,omitempty"` // of a quorum, whether or not there is a name
}

func newHub(client source) *hub { return &hub{client: client} }

var errFull = errors.New("100 pages are open already")

// enter adds a viewer. The first one starts the looks.
func (h *hub) enter() (*run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers == mostViewers {
		return nil, errFull
	}
	h.viewers++
	if h.run == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.run = &run{cancel: cancel, done: make(chan struct{}), wake: make(chan struct{})}
		go h.looks(ctx, h.run, h.earlier)
	}
	return h.run, nil
}

// leave takes a viewer away. The last one waits until the looks have ended.
func (h *hub) leave() {
	h.mu.Lock()
	h.viewers--
	if h.viewers > 0 {
		h.mu.Unlock()
		return
	}
	ended := h.run
	h.run, h.earlier = nil, ended
	h.mu.Unlock()
	ended.cancel()
	<-ended.done
	h.mu.Lock()
	if h.earlier == ended {
		h.earlier = nil
	}
	h.mu.Unlock()
}

// looks looks until ctx is over, after the run before has ended.
func (h *hub) looks(ctx context.Context, r, earlier *run) {
	defer close(r.done)
	if earlier != nil {
		<-earlier.done
	}
	h.mu.Lock()
	next := h.next
	h.mu.Unlock()
	var asked time.Time
	var state readiness
	for number := 1; rest(ctx, time.Until(next)); number++ {
		begin := time.Now()
		if number == 1 || begin.Sub(asked) >= readyEvery {
			state, asked = h.ask(ctx), begin
		}
		now := h.see(ctx, r.names, number)
		took := time.Since(begin)
		next = begin.Add(max(interval-took, took+restFactor*took))
		h.mu.Lock()
		h.next = next
		if ctx.Err() == nil {
			r.publish(state, took, now)
		}
		h.mu.Unlock()
	}
}

// readiness is what the servers say of themselves.
type readiness struct {
	ready   string // empty: they are ready
	masters []lockinfo.Master
}

// ask asks the servers whether they are ready, and the masters of a quorum whether they count.
func (h *hub) ask(ctx context.Context) (out readiness) {
	if err := h.client.Ready(ctx); err != nil {
		out.ready = err.Error()
	}
	out.masters, _ = h.client.Quorum(ctx) // or the servers are no quorum, or the client is closed, which List tells
	return out
}

// rest waits for d. It returns false if ctx is over.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// see reads all names.
func (h *hub) see(ctx context.Context, before map[string]*entry, number int) sight {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	s := newSight(before, number)
	for info, err := range h.client.List(ctx, holdfast.ListOptions{}) {
		if err != nil {
			s.err = err
			return s
		}
		s.add(info)
	}
	s.end()
	return s
}

// publish tells the viewers of a look. After one that failed, the names stay as they were.
func (r *run) publish(state readiness, took time.Duration, now sight) {
	r.status.Version, r.status.Took, r.status.Error = lockinfo.Version, took.Seconds(), ""
	r.status.Ready, r.status.Masters = state.ready, state.masters
	r.number, r.told = now.number, told{}
	if now.err != nil {
		r.status.Error = now.err.Error()
	} else {
		r.status.More = now.more
		if !now.at.IsZero() {
			r.status.At = now.at.UTC()
		} else {
			r.status.At = time.Now().UTC() // there is no name, so no server told the time
		}
		if r.names != nil {
			r.told = told{now.changes, now.unseen}
		}
		r.names = now.names
		r.arrange(now)
	}
	close(r.wake)
	r.wake = make(chan struct{})
}

// arrange puts the rows in order, and notes which names are gone.
func (r *run) arrange(now sight) {
	r.rows = slices.SortedFunc(maps.Values(now.names), func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id))
	})
	for _, id := range now.gone {
		r.gone = append(r.gone, departure{now.number, id})
	}
	if most := len(r.gone) - mostGone; most > 0 {
		r.forgotten = r.gone[most-1].number
		r.gone = slices.Clone(r.gone[most:])
	}
}

// seen are the names of the last look; nil: there is none. They are not changed any more.
func (h *hub) seen() map[string]*entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run == nil {
		return nil
	}
	return h.run.names
}

package wire

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// questionTime is how long the first question may take at least. Its callers may have less time.
const questionTime = time.Second

// doubtful is how soon what is known of a cluster may be asked for again.
const doubtful = time.Second

// A topology remembers what is behind a store, once the store could be asked. One first question is
// under way at a time, for all callers. None of them can cancel it for the others, and none
// shortens its time.
type topology struct {
	store Store
	learn func(Topology) // gets every answer

	mu     sync.Mutex
	known  bool
	is     Topology
	err    error         // of the last question
	asking chan struct{} // closed when the first question is answered
	asked  time.Time
	stale  bool
}

// Topology returns what is behind the store. It is asked for once. The error is that of the
// question, or of ctx.
func (t *topology) Topology(ctx context.Context, deadline time.Time) (Topology, error) {
	t.mu.Lock()
	if t.known {
		defer t.mu.Unlock()
		return t.is, nil
	}
	if t.asking == nil {
		t.asking = make(chan struct{})
		go t.ask(deadline)
	}
	asking := t.asking
	t.mu.Unlock()
	timer := protocol.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-asking:
	case <-ctx.Done():
		return Topology{}, protocol.EndOf(ctx)
	case <-timer.C:
		return Topology{}, context.DeadlineExceeded
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is, t.err
}

// ask asks until a deadline, but for questionTime at least.
func (t *topology) ask(deadline time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), max(time.Until(deadline), questionTime))
	defer cancel()
	is, err := t.store.Describe(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.is, t.err, t.known, t.asked = is, err, err == nil, time.Now()
	if err == nil {
		t.learn(is)
	}
	close(t.asking)
	t.asking = nil
}

// KnownSingle reports whether the store is known to be one of a single server.
func (t *topology) KnownSingle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known && !t.is.Cluster
}

// Doubt notes that a request failed: another server may serve its slot by now.
func (t *topology) Doubt() {
	t.mu.Lock()
	t.stale = true
	t.mu.Unlock()
}

// Doubted reports whether it is time to ask again what is behind the store. It takes the doubt
// away, so the caller must Refresh.
func (t *topology) Doubted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known || !t.stale || time.Since(t.asked) < doubtful {
		return false
	}
	t.stale, t.asked = false, time.Now()
	return true
}

// Refresh asks again what is behind the store. Without an answer that stays doubtful.
func (t *topology) Refresh(deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	is, err := t.store.Describe(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.stale = true
		return
	}
	t.is = is
	t.learn(is)
}

// Warnings returns what users should know of a topology before they trust it. With noEvict they
// need not know of eviction.
func Warnings(t Topology, noEvict bool) (texts []string) {
	for _, n := range t.Nodes {
		if !noEvict && n.Eviction != "" && n.Eviction != "noeviction" {
			texts = append(texts, fmt.Sprintf("server %s may evict locks when its memory is full: "+
				"its maxmemory-policy is %s, not noeviction",
				n.ID, n.Eviction))
		}
		if major, minor := release(n.Version); major > 0 && (major < 6 || major == 6 && minor < 2) {
			texts = append(texts, fmt.Sprintf("server %s is of version %s; holdfast is made for 6.2 and newer", n.ID,
				n.Version))
		}
	}
	return texts
}

// release reads a version; 0 where there is none.
func release(version string) (major, minor int) {
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor
}

// A Server is one server behind a store: what travels to it, by the Do of its Batcher, and what is
// known of its clock. The clocks of two servers have nothing to do with each other. A server that
// does not answer delays no request to another.
type Server struct {
	*Batcher
	Clock Clock
}

// Servers are all servers behind a store, and which of them serves a slot. That is a hint: the
// store decides where a request goes. What is sent to the Store goes past the batchers. Servers are
// safe for concurrent use.
type Servers struct {
	Store
	topology
	one *Server // of a single server, and for slots of which nothing is known

	mu    sync.Mutex
	known map[string]*Server // by id
	table atomic.Pointer[[Slots]*Server]
}

// NewServers makes the Servers behind a store. It sends nothing.
func NewServers(s Store) *Servers {
	out := &Servers{Store: s, one: &Server{Batcher: NewBatcher(s)}, known: make(map[string]*Server)}
	out.topology.store, out.topology.learn = s, out.learn
	return out
}

// Serving returns the server of a slot.
func (s *Servers) Serving(slot int) *Server {
	if table := s.table.Load(); table != nil && table[slot] != nil {
		return table[slot]
	}
	return s.one
}

// learn takes in which server serves what.
func (s *Servers) learn(t Topology) {
	if !t.Cluster {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	table := new([Slots]*Server)
	for _, node := range t.Nodes {
		if s.known[node.ID] == nil {
			s.known[node.ID] = &Server{Batcher: NewBatcher(s.Store)}
		}
		for _, r := range node.Slots {
			for slot := max(r.From, 0); slot <= min(r.To, Slots-1); slot++ {
				table[slot] = s.known[node.ID]
			}
		}
	}
	s.table.Store(table)
}

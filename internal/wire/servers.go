package wire

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// A Server is one server behind a store: what travels to it, by the Do of its Batcher, and what is
// known of its clock. The clocks of two servers have nothing to do with each other. A server that
// does not answer delays no request to another.
type Server struct {
	*Batcher
	Clock Clock
}

// Servers are all servers behind a store, and which of them serves a slot. That is a hint: the
// store decides where a request goes. Servers are safe for concurrent use.
type Servers struct {
	store    Store
	one      *Server // of a single server, and for slots of which nothing is known
	topology topology

	mu    sync.Mutex
	known map[string]*Server // by id
	table atomic.Pointer[[Slots]*Server]
}

// NewServers makes the Servers behind a store. It sends nothing.
func NewServers(s Store) *Servers {
	out := &Servers{store: s, one: &Server{Batcher: &Batcher{store: s}}, known: make(map[string]*Server)}
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

// Do sends requests at once, in one flush a server, past the batchers.
func (s *Servers) Do(ctx context.Context, requests []Request) []Reply {
	return s.store.Do(ctx, requests)
}

// Probe is Probe of the store behind the Servers.
func (s *Servers) Probe(ctx context.Context, keyIn func(slot int) string) error {
	return Probe(ctx, s.store, keyIn)
}

// Scan is Scan of the store behind the Servers.
func (s *Servers) Scan(ctx context.Context, pattern string, timeout time.Duration) iter.Seq2[string, error] {
	return Scan(ctx, s.store, pattern, timeout)
}

// Subscribe opens a subscription, as Store does.
func (s *Servers) Subscribe(ctx context.Context, sink Sink) (Subscription, error) {
	return s.store.Subscribe(ctx, sink)
}

// Topology returns what is behind the store. It is asked for once. The error is that of the
// question, or of ctx.
func (s *Servers) Topology(ctx context.Context, deadline time.Time) (Topology, error) {
	return s.topology.of(ctx, deadline)
}

// KnownSingle reports whether the store is known to be one of a single server.
func (s *Servers) KnownSingle() bool { return s.topology.single() }

// Doubt notes that a request failed: another server may serve its slot by now.
func (s *Servers) Doubt() { s.topology.doubt() }

// Doubted reports whether it is time to ask again what is behind the store. It takes the doubt
// away, so the caller must Refresh.
func (s *Servers) Doubted() bool { return s.topology.doubted() }

// Refresh asks again what is behind the store. Without an answer that stays doubtful.
func (s *Servers) Refresh(deadline time.Time) { s.topology.refresh(deadline) }

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
			s.known[node.ID] = &Server{Batcher: &Batcher{store: s.store}}
		}
		for _, r := range node.Slots {
			for slot := max(r.From, 0); slot <= min(r.To, Slots-1); slot++ {
				table[slot] = s.known[node.ID]
			}
		}
	}
	s.table.Store(table)
}

package wire

import (
	"sync"
	"sync/atomic"
)

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

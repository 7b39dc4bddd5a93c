package memory

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Record is the part of the server's state that can change its later answers about one ticket, or
// about one name if there is no ID. Two servers with the same records answer alike, except for what
// Inspect and List tell of other tickets.
type Record struct {
	Name  string
	ID    protocol.ID
	State RecordState
	Place int   // the position in the queue
	Until int64 // server time, microseconds
	Token int64 // of a hold
	Count int64 // of a name: its permits; of a latch: how many are still to count down

	Shared bool // the mode of a hold
	Closed bool // of a kept place: nobody waits there
}

// A RecordState says what a Record is about.
type RecordState byte

// The first three are the states of a hold.
const (
	RecordHeld    = RecordState(held)
	RecordMinHeld = RecordState(minHeld)
	RecordBroken  = RecordState(broken)

	RecordPlace = RecordBroken + iota
	RecordEvicted
	RecordLatch   // the call that set it
	RecordCounted // a call that counted down
	RecordName    // a name that is used
)

// Records appends what is known of all names to records, in no certain order, and returns the
// largest token.
func (s *Server) Records(records []Record) ([]Record, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, n := range s.names {
		for _, h := range n.holds {
			records = append(records, Record{Name: at.name, ID: h.ticket.ID, State: RecordState(h.state),
				Until: h.until, Token: h.token, Shared: h.spec.Shared})
		}
		for i, e := range n.queue {
			records = append(records, Record{Name: at.name, ID: e.ticket.ID, State: RecordPlace, Place: i,
				Until: e.until, Closed: e.closed})
		}
		for id, e := range n.evicted {
			records = append(records, Record{Name: at.name, ID: id, State: RecordEvicted, Until: e.until})
		}
		if l := n.latch; l != nil {
			records = append(records, Record{Name: at.name, ID: l.set, State: RecordLatch, Until: l.until,
				Count: l.count})
			for id := range l.counted {
				records = append(records, Record{Name: at.name, ID: id, State: RecordCounted})
			}
		}
		if n.used() {
			records = append(records, Record{Name: at.name, State: RecordName, Count: n.permits})
		}
	}
	return records, s.token
}

// Clone returns a server that is as s is now and goes on by itself, by the same clock. Messages go
// to the same sinks.
func (s *Server) Clone() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := copiedServer{from: s, clients: make([]Client, len(s.clients))}
	to := &Server{features: s.features, clock: s.clock, born: s.born, token: s.token,
		names: make(map[key]*name, len(s.names)), kept: make(map[keptTicket][]*listener, len(s.kept))}
	for i, client := range s.clients {
		c.clients[i] = Client{server: to, prefix: client.prefix, subscriptions: c.listeners(client.subscriptions)}
		to.clients = append(to.clients, &c.clients[i])
	}
	for ticket, listeners := range s.kept {
		to.kept[ticket] = c.listeners(listeners)
	}
	for key, name := range s.names {
		to.names[key] = c.name(*name)
	}
	return to
}

// A copiedServer is a server that is copied, with the copies of its clients.
type copiedServer struct {
	from    *Server
	clients []Client // the copies, in the same order
}

func (c *copiedServer) client(of *Client) *Client {
	return &c.clients[slices.Index(c.from.clients, of)]
}

func (c *copiedServer) listeners(of []*listener) (copies []*listener) {
	for _, l := range of {
		copies = append(copies, &listener{client: c.client(l.client), sink: l.sink, ticket: l.ticket})
	}
	return copies
}

func (c *copiedServer) entries(of []*entry) (copies []*entry) {
	for _, e := range of {
		copied := *e
		copied.client = c.client(e.client)
		copies = append(copies, &copied)
	}
	return copies
}

func (c *copiedServer) name(n name) *name {
	n.holds, n.queue = c.entries(n.holds), c.entries(n.queue)
	n.busied, n.watchers = c.entries(n.busied), c.entries(n.watchers)
	n.evicted = maps.Clone(n.evicted)
	if n.latch != nil {
		latch := *n.latch
		latch.counted = maps.Clone(latch.counted)
		n.latch = &latch
	}
	return &n
}

// Client returns the i-th client in the order of connection. No other client may connect meanwhile.
func (s *Server) Client(i int) *Client { return s.clients[i] }

// Unlisten removes the listeners for the ticket of a kept place.
func (s *Server) Unlisten(prefix string, id protocol.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, keptTicket{prefix, id})
}

package memory

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Record is what the later answers about one ticket depend on, or about one name if there is no
// ID. Two servers with the same records answer alike, but for what they tell of others.
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

// What a Record is about.
const (
	RecordHeld RecordState = iota
	RecordMinHeld
	RecordBroken
	RecordPlace
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
	out := &Server{features: s.features, clock: s.clock, born: s.born, token: s.token,
		names: make(map[key]*name, len(s.names)), kept: make(map[keptTicket][]*listener, len(s.kept))}
	clients := make([]Client, len(s.clients))
	client := func(of *Client) *Client { return &clients[slices.Index(s.clients, of)] }
	listeners := func(of []*listener) (copies []*listener) {
		for _, l := range of {
			copies = append(copies, &listener{client: client(l.client), sink: l.sink, ticket: l.ticket})
		}
		return copies
	}
	out.clients = make([]*Client, len(clients))
	for i, c := range s.clients {
		clients[i] = Client{server: out, prefix: c.prefix, subscriptions: listeners(c.subscriptions)}
		out.clients[i] = &clients[i]
	}
	for at, of := range s.kept {
		out.kept[at] = listeners(of)
	}
	entries := func(of []*entry) (copies []*entry) {
		for _, e := range of {
			e := *e
			e.client = client(e.client)
			copies = append(copies, &e)
		}
		return copies
	}
	for at, n := range s.names {
		n := *n
		n.holds, n.queue = entries(n.holds), entries(n.queue)
		n.busied, n.watchers = entries(n.busied), entries(n.watchers)
		n.evicted = maps.Clone(n.evicted)
		if n.latch != nil {
			l := *n.latch
			l.counted = maps.Clone(l.counted)
			n.latch = &l
		}
		out.names[at] = &n
	}
	return out
}

// Client returns one of those that were connected, in their order.
func (s *Server) Client(i int) *Client { return s.clients[i] }

// Unlisten ends what listens for the ticket of a kept place.
func (s *Server) Unlisten(prefix string, id protocol.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, keptTicket{prefix, id})
}

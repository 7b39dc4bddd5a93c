package memory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Server keeps names. It is safe for concurrent use.
type Server struct {
	features protocol.Features
	clock    func() time.Time
	born     time.Time

	// mu guards all below. Messages are delivered under it, so none comes after a Listener was
	// closed.
	mu      sync.Mutex
	clients []*Client
	names   map[key]*name
	kept    map[keptTicket][]*listener // who listens for the ticket of a kept place
	token   int64                      // the largest that was given out or reserved
}

type key struct{ prefix, name string }

type keptTicket struct {
	prefix string
	id     protocol.ID
}

type name struct {
	kind    protocol.Kind
	permits int64 // of a semaphore
	holds   []*entry
	queue   []*entry                 // in order
	lapse   int64                    // server time at which all holds that share and end by themselves are over
	busied  []*entry                 // without a queue: tickets that were answered Busy and not nudged since
	evicted map[protocol.ID]eviction // tickets that an operator took out of the queue lately

	watchers []*entry // that looked and were not nudged since
	latch    *latch
}

// used reports whether the name has more than watchers.
func (n *name) used() bool { return len(n.holds)+len(n.queue) > 0 || n.latch != nil }

// An eviction is what is remembered of a ticket that an operator took out of the queue.
type eviction struct {
	by    string // the label of the operator
	until int64  // server time at which it is forgotten
}

// An entry is a ticket that holds or waits, or the remainder of a hold.
type entry struct {
	ticket protocol.Ticket
	state  state
	by     string // of a hold that was broken: the label of the operator
	spec   protocol.Spec
	client *Client
	until  int64 // server time: the end of the hold, or of the place in the queue
	token  int64
	since  int64 // server time of the grant

	offered   bool  // of a hold: it was handed over, and its ticket has not asked or renewed since
	prolonged int64 // of a hold: server time of the last request that prolonged it
	joined    int64 // of a place: server time when the ticket joined
	order     int64 // of a place: larger than that of each place before

	closed bool // of a kept place: nobody waits there, as far as is known; no other ticket is treated otherwise for it
}

// heard reports whether messages to a ticket reach a process. A process that has not asked for the
// life of an ordinary place does not wait at a kept place any more, although it seems to listen.
func (e *entry) heard() bool {
	if e.ticket.Keep > 0 {
		s := e.client.server
		asked := e.until - e.ticket.Keep.Microseconds()
		return s.now() < asked+e.spec.Life.Microseconds() && len(s.kept[keptTicket{e.client.prefix, e.ticket.ID}]) > 0
	}
	return e.client.subscribed()
}

// tell sends a message to a ticket: to its process, or to the processes that wait with it.
func (e *entry) tell(message func(protocol.Sink)) {
	if e.ticket.Keep == 0 {
		e.client.tell(message)
		return
	}
	for _, l := range e.client.server.kept[keptTicket{e.client.prefix, e.ticket.ID}] {
		message(l.sink)
	}
}

// breakage is the error for the holder of a hold that was broken.
func (e *entry) breakage() error { return &protocol.Broken{Name: e.spec.Name, By: e.by} }

// A state is what an entry of the holds is.
type state int

const (
	held    state = iota
	minHeld       // a remainder: the hold was released before its min hold was over
	broken        // a remainder: an operator ended the hold
)

// New makes a server that knows no name.
func New(features protocol.Features) *Server { return NewAt(features, time.Now) }

// NewAt makes a server that goes by a clock.
func NewAt(features protocol.Features, clock func() time.Time) *Server {
	return &Server{features: features, clock: clock, born: clock(), names: make(map[key]*name),
		kept: make(map[keptTicket][]*listener)}
}

// Names are the names under a prefix that are held, waited for or watched, or a latch.
func (s *Server) Names(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for k, n := range s.names {
		n.sweep(s.now(), "")
		if k.prefix == prefix && (n.used() || n.watched(s.now())) {
			names = append(names, k.name)
		}
	}
	return names
}

// now is the server's time, in microseconds.
func (s *Server) now() int64 { return s.born.UnixMicro() + s.clock().Sub(s.born).Microseconds() }

// draw takes a token and reserves the block behind it.
func (s *Server) draw(now, block int64) int64 {
	token := max(now, s.token+1)
	s.token = token + block - 1
	return token
}

func (s *Server) hold(n *name, e *entry, now int64, ttl time.Duration) *entry {
	if len(n.holds) == 0 {
		n.lapse = 0
	}
	n.holds = append(n.holds, &entry{ticket: e.ticket, spec: e.spec, client: e.client,
		until: now + ttl.Microseconds(), token: s.draw(now, e.ticket.Block), since: now, prolonged: now})
	n.stir()
	n.lapses(n.holds[len(n.holds)-1])
	return n.holds[len(n.holds)-1]
}

// lapses takes down the end of a hold that shares and ends by itself.
func (n *name) lapses(h *entry) {
	if h.spec.Shared && (h.spec.Fixed || h.state != held) {
		n.lapse = max(n.lapse, h.until)
	}
}

// first is the hold or remainder that ends first.
func (n *name) first() *entry {
	var first *entry
	for _, h := range n.holds {
		if first == nil || h.until < first.until {
			first = h
		}
	}
	return first
}

// holder is the hold that ends first, of those that exclude if there are any. Nil: only remainders
// are left.
func (n *name) holder() *entry {
	var first *entry
	for _, h := range n.holds {
		if h.state == held && (first == nil || first.spec.Shared && !h.spec.Shared ||
			first.spec.Shared == h.spec.Shared && h.until < first.until) {
			first = h
		}
	}
	return first
}

// count is the number of holds, or that of the remainders where no hold is left.
func (n *name) count() int {
	holds := 0
	for _, h := range n.holds {
		if h.state == held {
			holds++
		}
	}
	if holds == 0 {
		return len(n.holds)
	}
	return holds
}

// sweep takes out what is over: holds, and places in the queue. The place of the ticket that asks
// just now stays.
func (n *name) sweep(now int64, self protocol.ID) {
	n.holds = slices.DeleteFunc(n.holds, func(h *entry) bool { return h.until <= now })
	n.queue = slices.DeleteFunc(n.queue, func(e *entry) bool { return e.until <= now && e.ticket.ID != self })
	maps.DeleteFunc(n.evicted, func(_ protocol.ID, e eviction) bool { return e.until <= now })
	if n.latch != nil && n.latch.until <= now {
		n.latch = nil
	}
}

// leave takes a ticket out of the queue, and reports whether it was in.
func (n *name) leave(id protocol.ID) bool {
	before := len(n.queue)
	n.queue = slices.DeleteFunc(n.queue, func(e *entry) bool { return e.ticket.ID == id })
	return len(n.queue) < before
}

// find is the hold, or the place, of a ticket.
func find(entries []*entry, id protocol.ID) *entry {
	if i := slices.IndexFunc(entries, func(e *entry) bool { return e.ticket.ID == id && e.state == held }); i >= 0 {
		return entries[i]
	}
	return nil
}

// remainder is what is left of the hold of a ticket.
func (n *name) remainder(id protocol.ID) *entry {
	if i := slices.IndexFunc(n.holds, func(e *entry) bool { return e.ticket.ID == id && e.state != held }); i >= 0 {
		return n.holds[i]
	}
	return nil
}

// over tells, as a Failure, that a request comes too late or that its caller has given up. Such
// a request takes no effect.
func (s *Server) over(ctx context.Context, op, name string, deadline time.Time) error {
	err := ctx.Err()
	if at, ok := ctx.Deadline(); err == nil && ok && !s.clock().Before(at) {
		err = context.DeadlineExceeded
	}
	if err == nil && !deadline.IsZero() && s.clock().After(deadline) {
		err = context.DeadlineExceeded
	}
	if err == nil {
		return nil
	}
	return &protocol.Failure{Op: op, Name: name, Reason: protocol.Unreachable, Err: err}
}

package memory

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Inspect implements protocol.Operators.
func (c *Client) Inspect(ctx context.Context, of string, page protocol.Page) (protocol.Inspection, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(ctx, "inspect", of, time.Time{}); err != nil {
		return protocol.Inspection{}, err
	}
	now := s.now()
	out := protocol.Inspection{Server: now}
	n := s.names[key{c.prefix, of}]
	if n == nil || !n.inUse(now) {
		return out, nil
	}
	out.Kind, out.Permits = n.kind, n.permits
	if n.latch != nil && n.latch.until > now {
		standing := n.standing(now)
		out.Latch, out.Count, out.Until = standing.Latch, standing.Count, n.latch.until
	}
	for _, h := range n.holds {
		if h.until > now {
			out.HoldCount++
			out.Taken += h.ticket.Weight
			if len(out.Holds) < page.Holds {
				out.Holds = append(out.Holds, h.inspect())
			}
		}
	}
	for _, e := range n.queue {
		if !e.closed {
			out.QueueCount++
		}
		if e.order > page.After && len(out.Queue) < page.Queue {
			out.Queue = append(out.Queue, e.place())
		}
	}
	return out, nil
}

// inUse reports whether a ticket holds or has a place, or the name is a latch, at a server time.
func (n *name) inUse(now int64) bool {
	holds := slices.ContainsFunc(n.holds, func(h *entry) bool { return h.until > now })
	return holds || len(n.queue) > 0 || n.latch != nil && n.latch.until > now
}

func (e *entry) inspect() protocol.Hold {
	states := map[state]protocol.HoldState{held: protocol.HoldTaken, minHeld: protocol.HoldMinHold,
		broken: protocol.HoldBroken}
	is := states[e.state]
	if is == protocol.HoldTaken && e.offered {
		is = protocol.HoldOffered
	}
	renewed := e.prolonged
	if e.state != held {
		renewed = 0
	}
	return protocol.Hold{
		ID: e.ticket.ID, State: is, By: e.by, Party: e.party(), Shared: e.spec.Shared, Weight: e.ticket.Weight,
		Token: e.token, Block: e.ticket.Block, Since: e.since, Until: e.until, TTL: e.spec.TTL, Fixed: e.spec.Fixed,
		Renewed: renewed,
	}
}

// place is what is told of a place in the queue.
func (e *entry) place() protocol.Place {
	heard := protocol.HeardNo
	switch {
	case e.closed:
	case e.ticket.NoMessages:
		heard = protocol.HeardUnknown
	case e.heard():
		heard = protocol.HeardYes
	}
	return protocol.Place{
		ID: e.ticket.ID, Party: e.party(), Shared: e.spec.Shared, Weight: e.ticket.Weight, Order: e.order,
		Since: e.joined, Until: e.until,
		Kept: e.ticket.Keep > 0, Closed: e.closed, Heard: heard, Under: e.ticket.Under, More: e.ticket.More,
	}
}

// Names implements protocol.Operators.
func (c *Client) Names(ctx context.Context, pattern string) iter.Seq2[protocol.FoundName, error] {
	return func(yield func(protocol.FoundName, error) bool) {
		if err := c.server.over(ctx, "list", "", time.Time{}); err != nil {
			yield(protocol.FoundName{}, err)
			return
		}
		for _, n := range c.server.Names(c.prefix) {
			if protocol.Match(pattern, n) && !yield(protocol.FoundName{Name: n}, nil) {
				return
			}
		}
	}
}

// Break implements protocol.Operators.
func (c *Client) Break(ctx context.Context, of string, b protocol.Break) (bool, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &resource{client: c, spec: protocol.Spec{Name: of, Kind: b.Kind}}
	n, now, err := r.open(ctx, "break", time.Time{}, "")
	if err != nil {
		return false, err
	}
	for _, h := range n.holds {
		if b.Token < h.token || b.Token >= h.token+h.ticket.Block || !b.Force && h.state != held && h.state != broken {
			continue
		}
		id := h.ticket.ID
		if b.Force {
			before := n.next()
			if h.state != held { // as after the release of what a Break left
				before = nil
			}
			h.until = now
			n.sweep(now, "")
			s.changed(n, before, 0, now)
		} else if h.state == held {
			h.state, h.by = broken, b.By
			n.lapses(h)
			n.nudgeFirst(nil, now)
		}
		n.stir()
		h.tell(func(sink protocol.Sink) { sink.Broken(id) })
		return true, nil
	}
	return false, nil
}

// openQueued begins a request of an operator about a name that has a queue. The server's mutex is
// held.
func (c *Client) openQueued(ctx context.Context, op, of string, kind protocol.Kind) (n *name, now int64, err error) {
	if !c.server.features.Queue || kind == protocol.Latch {
		return nil, 0, &protocol.Failure{Op: op, Name: of, Reason: protocol.Unsupported, Err: protocol.ErrNoQueue}
	}
	r := &resource{client: c, spec: protocol.Spec{Name: of, Kind: kind}}
	return r.open(ctx, op, time.Time{}, "")
}

// Tell implements protocol.Operators.
func (c *Client) Tell(ctx context.Context, of string, kind protocol.Kind, id protocol.ID) (
	t protocol.TellCount, err error) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	n, _, err := c.openQueued(ctx, "tell", of, kind)
	if err != nil {
		return t, err
	}
	told, message := n.holds, protocol.Sink.Recall
	if id != "" {
		told, message = n.queue, func(sink protocol.Sink, id protocol.ID) { sink.Nudge(id, 0) }
	}
	for _, e := range told {
		if id == "" && e.state != held || id != "" && (e.ticket.ID != id || e.closed) {
			continue
		}
		t.Found++
		if !e.ticket.NoMessages && e.heard() {
			t.Heard++
			e.tell(func(sink protocol.Sink) { message(sink, e.ticket.ID) })
		}
	}
	return t, nil
}

// Evict implements protocol.Operators.
func (c *Client) Evict(ctx context.Context, of string, kind protocol.Kind, id protocol.ID, by string) (bool, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := c.openQueued(ctx, "evict", of, kind)
	if err != nil {
		return false, err
	}
	place := find(n.queue, id)
	if _, again := n.evicted[id]; place == nil {
		return again, nil
	}
	if n.evicted == nil {
		n.evicted = make(map[protocol.ID]eviction)
	}
	n.evicted[id] = eviction{by: by, until: now + max(place.spec.Life, place.ticket.Keep).Microseconds()}
	n.leave(id)
	s.changed(n, nil, 0, now)
	place.tell(func(sink protocol.Sink) { sink.Nudge(id, 0) })
	return true, nil
}

package memory

import (
	"context"
	"errors"
	"iter"
	"path"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Inspect implements protocol.Operators.
func (c *Client) Inspect(ctx context.Context, of string, page protocol.Page) (protocol.Inspection, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := over(ctx, "inspect", of, time.Time{}); err != nil {
		return protocol.Inspection{}, err
	}
	now := s.now()
	out := protocol.Inspection{Server: now}
	n := s.names[key{c.prefix, of}]
	if n == nil || !n.inUse(now) {
		return out, nil
	}
	standing := n.standing(now)
	out.Kind, out.Permits, out.Taken = n.kind, n.permits, standing.Taken
	out.Latch, out.Count = standing.Latch, standing.Count
	if n.latch != nil {
		out.Until = n.latch.until
	}
	for _, h := range n.holds {
		if h.until > now {
			out.HoldCount++
			if len(out.Holds) < page.Holds {
				out.Holds = append(out.Holds, h.inspect())
			}
		}
	}
	for at, e := range n.queue {
		if e.until <= now {
			continue
		}
		if !e.closed {
			out.QueueCount++
		}
		if order := int64(at + 1); order > page.After && len(out.Queue) < page.Queue {
			out.Queue = append(out.Queue, e.place(order))
		}
	}
	return out, nil
}

// inUse tells whether a ticket holds or waits, or the name is a latch, at a server time.
func (n *name) inUse(now int64) bool {
	for _, entries := range [][]*entry{n.holds, n.queue} {
		for _, e := range entries {
			if e.until > now {
				return true
			}
		}
	}
	return n.latch != nil && n.latch.until > now
}

// inspect is what is told of a hold.
func (e *entry) inspect() protocol.Hold {
	states := map[state]protocol.HoldState{held: protocol.HoldTaken, kept: protocol.HoldMinHold, replaced: protocol.HoldTakenOver, broken: protocol.HoldBroken}
	is := states[e.state]
	if is == protocol.HoldTaken && e.offered {
		is = protocol.HoldOffered
	}
	return protocol.Hold{
		ID: e.ticket.ID, State: is, By: e.by, Party: e.party(), Shared: e.spec.Shared, Weight: e.ticket.Weight,
		Token: e.token, Block: e.ticket.Block, Since: e.since, Until: e.until, TTL: e.spec.TTL, Fixed: e.spec.Fixed, Renewed: e.prolonged,
	}
}

// place is what is told of a place in the queue.
func (e *entry) place(order int64) protocol.Place {
	heard := protocol.HeardNo
	if e.heard() {
		heard = protocol.HeardYes
	}
	return protocol.Place{
		ID: e.ticket.ID, Party: e.party(), Shared: e.spec.Shared, Weight: e.ticket.Weight, Order: order, Since: e.joined, Until: e.until,
		Kept: e.ticket.Keep > 0, Closed: e.closed, Heard: heard, Under: e.ticket.Under, More: e.ticket.More,
	}
}

// Names implements protocol.Operators.
func (c *Client) Names(ctx context.Context, pattern string) iter.Seq2[protocol.Found, error] {
	return func(yield func(protocol.Found, error) bool) {
		if err := over(ctx, "list", "", time.Time{}); err != nil {
			yield(protocol.Found{}, err)
			return
		}
		for _, n := range c.server.Names(c.prefix) {
			if ok, _ := path.Match(pattern, n); ok && !yield(protocol.Found{Name: n}, nil) {
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
	if err := over(ctx, "break", of, time.Time{}); err != nil {
		return false, err
	}
	now := s.now()
	n, err := (&resource{client: c, spec: protocol.Spec{Name: of, Kind: b.Kind}}).open("break", "", now)
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
			h.until = now
			n.sweep(now, "")
			s.changed(n, before, 0, now)
		} else if h.state == held {
			h.state, h.by, h.to = broken, b.By, ""
			n.lapses(h)
			n.nudgeFirst(nil, now)
		}
		h.tell(func(sink protocol.Sink) { sink.Replaced(id) })
		return true, nil
	}
	return false, nil
}

// Evict implements protocol.Operators.
func (c *Client) Evict(ctx context.Context, of string, kind protocol.Kind, id protocol.ID, by string) (bool, error) {
	return false, &protocol.Failure{Op: "evict", Name: of, Reason: protocol.Unsupported, Err: errors.New("not written yet")}
}

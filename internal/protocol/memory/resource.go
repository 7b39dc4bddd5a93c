package memory

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A resource is a name and who wants it.
type resource struct {
	client *Client
	spec   protocol.Spec
}

// open finds the name, with nothing in it whose time is over but the place of a ticket. It is called with the server's
// mutex held.
func (r *resource) open(op string, self protocol.ID, now int64) (*name, error) {
	s, at := r.client.server, key{r.client.prefix, r.spec.Name}
	n := s.names[at]
	if n == nil {
		n = &name{}
		s.names[at] = n
	}
	n.sweep(now, self)
	if !n.used() {
		n.kind, n.permits = r.spec.Kind, r.spec.Permits
	}
	if n.kind != r.spec.Kind {
		return nil, &protocol.Foreign{Op: op, Name: r.spec.Name, Key: at.prefix + ":" + at.name, Is: "held as a " + n.kind.String(),
			Want: "a " + r.spec.Kind.String()}
	}
	return n, nil
}

// Ask implements protocol.Resource.
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := over(ctx, "ask", r.spec.Name, ask.Deadline); err != nil {
		return protocol.Answer{}, err
	}
	now := s.now()
	n, err := r.open("ask", ask.Ticket.ID, now)
	if err != nil {
		return protocol.Answer{}, err
	}
	if h := r.mine(n, ask.Ticket.ID); h != nil { // asked before
		h.until = now + ask.TTL.Microseconds()
		n.lapses(h)
		return h.answer(now), nil
	}
	self := &entry{ticket: ask.Ticket, spec: r.spec, client: r.client, until: now + r.spec.Life.Microseconds()}
	if n.remainder(ask.Ticket.ID) != nil { // the request comes late
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	if err := n.refuses(self); err != nil {
		return protocol.Answer{}, err
	}
	if ask.Release != nil {
		n.give(ask.Release.ID)
		n.leave(ask.Release.ID)
	}
	before, beside := n.next(), n.owns(self) || n.reads(self) && n.fits(self)
	waits := find(n.line, ask.Ticket.ID) != nil
	h := s.admit(n, self, now, ask.TTL)
	if h != nil && (waits || beside) {
		before = nil
	}
	n.tell(before, now)
	if h != nil {
		return h.answer(now), nil
	}
	if !ask.Join && !ask.InLine {
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	if !s.features.Queue {
		n.told = slices.DeleteFunc(n.told, func(e *entry) bool { return e.until <= now || e.ticket.ID == ask.Ticket.ID })
		n.told = append(n.told, self)
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	if place := find(n.line, ask.Ticket.ID); place != nil {
		place.until = self.until
	} else {
		n.line = append(n.line, self)
	}
	return n.busy(protocol.Queued, ask.Ticket.ID, now), nil
}

// Resume implements protocol.Resource.
func (r *resource) Resume(ctx context.Context, ask protocol.Ask, owner string, token int64) (protocol.Answer, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := over(ctx, "resume", r.spec.Name, ask.Deadline); err != nil {
		return protocol.Answer{}, err
	}
	now := s.now()
	n, err := r.open("resume", ask.Ticket.ID, now)
	if err != nil {
		return protocol.Answer{}, err
	}
	if h := find(n.holds, ask.Ticket.ID); h != nil { // asked before
		h.until = now + ask.TTL.Microseconds()
		return h.answer(now), nil
	}
	for _, h := range n.holds {
		if h.state == held && !h.spec.Shared && (h.spec.Owner == owner || h.spec.Owner == "" && string(h.ticket.ID) == owner) && owner != "" &&
			h.token <= token && token < h.token+h.ticket.Block && n.leaves(h, r.spec) {
			for _, left := range n.holds {
				if left.state == replaced && left.to == h.ticket.ID {
					left.to = ask.Ticket.ID
				}
			}
			h.state, h.by, h.to = replaced, r.spec.Label, ask.Ticket.ID
			id := h.ticket.ID
			h.client.tell(func(sink protocol.Sink) { sink.Replaced(id) })
			ticket := ask.Ticket
			ticket.Block = 1
			return s.hold(n, &entry{ticket: ticket, spec: r.spec, client: r.client}, now, ask.TTL).answer(now), nil
		}
	}
	return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
}

// leaves tells whether all other holds, and the remainders of holds that this one did not take over, are of the owner that wants to
// take it over: else they exclude that owner.
func (n *name) leaves(taken *entry, to protocol.Spec) bool {
	return !slices.ContainsFunc(n.holds, func(h *entry) bool {
		lineage := h.state == replaced && h.to == taken.ticket.ID
		return h != taken && !lineage && (to.Owner == "" || h.spec.Owner != to.Owner)
	})
}

// Free implements protocol.Resource.
func (r *resource) Free(ctx context.Context, free protocol.Free) (bool, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := over(ctx, "free", r.spec.Name, time.Time{}); err != nil {
		return false, err
	}
	now := s.now()
	n, err := r.open("free", free.Ticket.ID, now)
	if err != nil {
		return false, err
	}
	n.told = slices.DeleteFunc(n.told, func(e *entry) bool { return e.ticket.ID == free.Ticket.ID })
	if left := n.remainder(free.Ticket.ID); left != nil && left.state == replaced && left.spec.Shared == r.spec.Shared {
		n.end(left, free.Keep, now)
		s.changed(n, nil, free.Keep, now)
		return false, &protocol.Replaced{Name: r.spec.Name, By: left.by}
	}
	h := r.mine(n, free.Ticket.ID)
	if n.leave(free.Ticket.ID) && h == nil {
		s.changed(n, nil, 0, now)
		return true, nil
	}
	if h == nil {
		return false, nil
	}
	before := n.next()
	if h.state = kept; free.Keep > now {
		before = nil
	}
	n.end(h, free.Keep, now)
	n.lapses(h)
	s.changed(n, before, free.Keep, now)
	return true, nil
}

// end ends a remainder at a server time, or at its own end if that is sooner.
func (n *name) end(left *entry, at, now int64) {
	if left.state == kept || at < left.until {
		left.until = at
	}
	n.holds = slices.DeleteFunc(n.holds, func(h *entry) bool { return h == left && left.until <= now })
}

// changed lets in all that may hold after a hold, a remainder or a place is gone, and tells the first in line how long
// the others keep it out, if it is another than before, or nil. Keep is the server time at which a remainder ends, or 0.
func (s *Server) changed(n *name, before *entry, keep, now int64) {
	s.admit(n, nil, now, 0)
	n.nudge(0)
	if keep > now {
		n.nudge(time.Duration(keep-now) * time.Microsecond)
	}
	n.tell(before, now)
}

// next is the first in line, if any.
func (n *name) next() *entry {
	if len(n.line) == 0 {
		return nil
	}
	return n.line[0]
}

// tell lets the first in line, if it is another than before, ask when the first of the holds is over, if one lapses: a remainder, and
// a hold that is not renewed, end by themselves, and nobody is told then. A waiter that does not hear is passed over.
func (n *name) tell(before *entry, now int64) {
	next := n.next()
	if next == nil || next == before {
		return
	}
	if !slices.ContainsFunc(n.holds, func(h *entry) bool {
		return h.spec.Shared && n.lapse > now || !h.spec.Shared && (h.state != held || h.spec.Fixed)
	}) {
		return
	}
	after := time.Duration(n.first().until-now) * time.Microsecond
	for _, e := range n.line {
		if e.ticket.Deaf {
			return
		}
		if e.client.hears() {
			e.client.tell(func(sink protocol.Sink) { sink.Nudge(e.ticket.ID, after) })
			return
		}
	}
}

// renew prolongs a hold that is there.
func (r *resource) renew(ctx context.Context, renewal protocol.Renewal) protocol.Renewed {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := over(ctx, "renew", r.spec.Name, time.Time{}); err != nil {
		return protocol.Renewed{Err: err}
	}
	now := s.now()
	n, err := r.open("renew", "", now)
	if err != nil {
		return protocol.Renewed{Err: err}
	}
	h := r.mine(n, renewal.Ticket.ID)
	if left := n.remainder(renewal.Ticket.ID); h == nil && left != nil && left.state == replaced {
		return protocol.Renewed{Err: &protocol.Replaced{Name: r.spec.Name, By: left.by}}
	}
	if h != nil && renewal.TTL > 0 {
		h.until = max(now+renewal.TTL.Microseconds(), renewal.Floor)
		if renewal.Ceiling != 0 {
			h.until = max(now+1, min(h.until, renewal.Ceiling))
		}
	}
	return protocol.Renewed{Held: h != nil}
}

// mine is the hold of a ticket, if it is of the mode that this resource asks for: a downgrade makes it another.
func (r *resource) mine(n *name, id protocol.ID) *entry {
	if h := find(n.holds, id); h != nil && h.spec.Shared == r.spec.Shared {
		return h
	}
	return nil
}

// give takes the hold of a ticket out, and its remainder unless that is of a min hold.
func (n *name) give(id protocol.ID) {
	n.holds = slices.DeleteFunc(n.holds, func(h *entry) bool { return h.ticket.ID == id && h.state != kept })
}

// answer says that an entry holds.
func (e *entry) answer(now int64) protocol.Answer {
	return protocol.Answer{Status: protocol.Held, Token: e.token, Block: e.ticket.Block, Server: now}
}

// busy says who holds, and how many stand in line, before a ticket if it does itself.
func (n *name) busy(status protocol.Status, id protocol.ID, now int64) protocol.Answer {
	answer := protocol.Answer{Status: status, Server: now, Holders: n.count(), Waiters: len(n.line)}
	if place := slices.IndexFunc(n.line, func(e *entry) bool { return e.ticket.ID == id }); place >= 0 {
		answer.Waiters = place
	}
	if h := n.holder(); h != nil {
		answer.Holder, answer.Token = h.party(), h.token
	}
	h := n.holder()
	if h == nil || h.spec.Shared {
		h = n.first()
	}
	if h != nil {
		answer.Remaining = time.Duration(h.until-now) * time.Microsecond
	}
	return answer
}

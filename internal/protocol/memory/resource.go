package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A resource is a name and the kind of caller that wants it.
type resource struct {
	client *Client
	spec   protocol.Spec
}

// open begins a request that is not over: it finds the name, at a server time, and takes out what
// is over, but for the place of a ticket. The server's mutex is held.
func (r *resource) open(ctx context.Context, op string, deadline time.Time, self protocol.ID) (n *name, now int64,
	err error) {
	s, at := r.client.server, key{r.client.prefix, r.spec.Name}
	now = s.now()
	if err := s.over(ctx, op, r.spec.Name, deadline); err != nil {
		return nil, now, err
	}
	n = s.names[at]
	if n == nil {
		n = &name{}
		s.names[at] = n
	}
	n.sweep(now, self)
	if !n.used() {
		n.kind, n.permits = r.spec.Kind, r.spec.Permits
	}
	if n.kind != r.spec.Kind {
		return nil, now, &protocol.Foreign{Op: op, Name: r.spec.Name, Key: at.prefix + ":" + at.name,
			Found: "held as a " + n.kind.String(),
			Want:  "a " + r.spec.Kind.String()}
	}
	return n, now, nil
}

// Ask implements protocol.Resource.
//
//nolint:gocyclo // the definition of an ask, in one piece
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, stays := ask.Ticket.Keep > 0, ask.Ticket.ID
	if kept {
		stays = "" // its life is over when it is over
	}
	n, now, err := r.open(ctx, "ask", ask.Deadline, stays)
	if err != nil {
		return protocol.Answer{}, err
	}
	if h := r.mine(n, ask.Ticket.ID); h != nil { // asked before
		n.leave(ask.Ticket.ID) // a kept place, which stayed while the name was offered
		h.until = now + ask.TTL.Microseconds()
		h.offered, h.prolonged = false, now
		n.lapses(h)
		return h.answer(now), nil
	}
	if e, out := n.evicted[ask.Ticket.ID]; out {
		return protocol.Answer{}, &protocol.Evicted{Name: r.spec.Name, By: e.by}
	}
	self := &entry{ticket: ask.Ticket, spec: r.spec, client: r.client, until: now + r.spec.Life.Microseconds()}
	if kept {
		self.until = now + ask.Ticket.Keep.Microseconds()
	}
	gone, left := kept && ask.InLine && find(n.queue, ask.Ticket.ID) == nil, n.remainder(ask.Ticket.ID)
	if gone || left != nil { // the place is gone, or the request comes late
		n.leave(ask.Ticket.ID) // of a kept place whose hold was broken before it was taken up
		if left != nil && left.state == broken {
			return protocol.Answer{}, left.breakage()
		}
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	if err := n.refuses(self); err != nil {
		return protocol.Answer{}, err
	}
	if ask.Release != nil {
		n.give(ask.Release.ID)
		n.leave(ask.Release.ID)
	}
	if place := find(n.queue, ask.Ticket.ID); place != nil {
		place.closed = false
	}
	before, beside := n.next(), n.owns(self) || n.reads(self) && n.fits(self)
	waits := find(n.queue, ask.Ticket.ID) != nil
	h := s.admit(n, self, now, ask.TTL)
	if h != nil && (waits || beside) {
		before = nil
	}
	n.nudgeFirst(before, now)
	if h != nil {
		return h.answer(now), nil
	}
	n.recall(self)
	if !ask.Join && !ask.InLine {
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	if !s.features.Queue {
		n.busied = slices.DeleteFunc(n.busied,
			func(e *entry) bool { return e.until <= now || e.ticket.ID == ask.Ticket.ID })
		n.busied = append(n.busied, self)
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	place := find(n.queue, ask.Ticket.ID)
	if place == nil {
		self.joined, self.order = now, now
		if last := len(n.queue) - 1; last >= 0 {
			self.order = max(now, n.queue[last].order+1)
		}
		n.queue = append(n.queue, self)
		place = self
	}
	place.until, place.closed = self.until, kept && (!ask.InLine || ask.Leaving)
	if ask.Leaving {
		s.admit(n, nil, now, 0) // it may have kept others out until now
		n.nudgeFirst(nil, now)
	}
	return n.busy(protocol.Queued, ask.Ticket.ID, now), nil
}

// Free implements protocol.Resource.
func (r *resource) Free(ctx context.Context, free protocol.FreeRequest) (bool, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "free", time.Time{}, free.Ticket.ID)
	if err != nil {
		return false, err
	}
	n.busied = slices.DeleteFunc(n.busied, func(e *entry) bool { return e.ticket.ID == free.Ticket.ID })
	delete(n.evicted, free.Ticket.ID)
	if left := n.remainder(free.Ticket.ID); left != nil && left.state == broken && left.spec.Shared == r.spec.Shared {
		n.leave(free.Ticket.ID)
		n.prefer(free, now)
		n.end(left, free.Keep, now)
		s.changed(n, nil, free.Keep, now)
		return false, left.breakage()
	}
	h := r.mine(n, free.Ticket.ID)
	if n.leave(free.Ticket.ID) && h == nil {
		s.changed(n, nil, 0, now)
		return true, nil
	}
	if h == nil {
		return false, nil
	}
	n.prefer(free, now)
	before := n.next()
	if h.state = minHeld; free.Keep > now {
		before = nil
	}
	n.end(h, free.Keep, now)
	n.lapses(h)
	s.changed(n, before, free.Keep, now)
	return true, nil
}

// prefer makes an open place the first, if the name is given back at once.
func (n *name) prefer(free protocol.FreeRequest, now int64) {
	open := n.waiting()
	at := slices.IndexFunc(open, func(e *entry) bool { return e.ticket.ID == free.Next })
	if at > 0 && free.Keep <= now {
		open[at].order = open[0].order - 1
		slices.SortStableFunc(n.queue, func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	}
}

// end ends a remainder at a server time, or at its own end if that is sooner.
func (n *name) end(left *entry, at, now int64) {
	if left.state == minHeld || at < left.until {
		left.until = at
	}
	n.holds = slices.DeleteFunc(n.holds, func(h *entry) bool { return h == left && left.until <= now })
}

// changed lets in all that may hold after a hold, a remainder or a place is gone. If the first in
// the queue is another than before, it learns how long the others keep it out. Keep is the server
// time at which a remainder ends, or 0.
func (s *Server) changed(n *name, before *entry, keep, now int64) {
	s.admit(n, nil, now, 0)
	n.nudge(0)
	if keep > now {
		n.nudge(time.Duration(keep-now) * time.Microsecond)
	}
	n.nudgeFirst(before, now)
}

// next is the first in the queue that is no kept place without a process, if any.
func (n *name) next() *entry {
	for _, e := range n.waiting() {
		if e.ticket.Keep == 0 || e.heard() {
			return e
		}
	}
	return nil
}

// waiting are the entries of the queue whose place is not closed.
func (n *name) waiting() []*entry {
	return slices.DeleteFunc(slices.Clone(n.queue), func(e *entry) bool { return e.closed })
}

// nudgeFirst makes the first in the queue, if it is another than before, ask when the first of the
// holds is over. It does so only if one ends by itself, as a remainder does and a hold that is not
// renewed: no message tells of that. A waiter that no message reaches is passed over.
func (n *name) nudgeFirst(before *entry, now int64) {
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
	for _, e := range n.waiting() {
		if e.ticket.NoMessages {
			return
		}
		if e.heard() {
			e.tell(func(sink protocol.Sink) { sink.Nudge(e.ticket.ID, after) })
			return
		}
	}
}

// renew prolongs a hold that is there.
func (r *resource) renew(ctx context.Context, renewal protocol.Renewal) protocol.RenewalAnswer {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "renew", time.Time{}, "")
	if err != nil {
		return protocol.RenewalAnswer{Err: err}
	}
	h := r.mine(n, renewal.Ticket.ID)
	if left := n.remainder(renewal.Ticket.ID); h == nil && left != nil && left.state == broken {
		return protocol.RenewalAnswer{Err: left.breakage()}
	}
	if h != nil && renewal.TTL > 0 {
		h.until = max(now+renewal.TTL.Microseconds(), renewal.Floor)
		h.offered, h.prolonged = false, now
		if renewal.Ceiling != 0 {
			h.until = max(now+1, min(h.until, renewal.Ceiling))
		}
		n.lapses(h)
	}
	return protocol.RenewalAnswer{Held: h != nil}
}

// mine is the hold of a ticket, if it has the mode that this resource asks for. A downgrade gives
// it another mode.
func (r *resource) mine(n *name, id protocol.ID) *entry {
	if h := find(n.holds, id); h != nil && h.spec.Shared == r.spec.Shared {
		return h
	}
	return nil
}

// give takes the hold of a ticket out, and its remainder unless that is of a min hold.
func (n *name) give(id protocol.ID) {
	n.holds = slices.DeleteFunc(n.holds, func(h *entry) bool { return h.ticket.ID == id && h.state != minHeld })
}

func (e *entry) answer(now int64) protocol.Answer {
	return protocol.Answer{Status: protocol.Held, Token: e.token, Block: e.ticket.Block, Server: now}
}

// busy names the holder, and says how many tickets are queued: before the given one, if it is
// queued.
func (n *name) busy(status protocol.Status, id protocol.ID, now int64) protocol.Answer {
	answer := protocol.Answer{Status: status, Server: now, Holders: n.count(), Waiters: len(n.waiting())}
	if place := slices.IndexFunc(n.queue, func(e *entry) bool { return e.ticket.ID == id }); place >= 0 {
		answer.Waiters = len((&name{queue: n.queue[:place]}).waiting())
	}
	if h := n.holder(); h != nil {
		answer.Holder, answer.Token, answer.Since = h.party(), h.token, h.since
	}
	h := n.holder()
	if h == nil || h.spec.Shared {
		h = n.first()
	}
	if h != nil {
		if answer.Holder == (protocol.Party{}) {
			answer.Left, answer.By = h.inspect().State, h.by
		}
		answer.Remaining = time.Duration(h.until-now) * time.Microsecond
	}
	return answer
}

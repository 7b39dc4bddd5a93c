package memory

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// fits reports whether a ticket may hold beside the holds and remainders that there are. It may
// beside those of its own owner, or where all share and enough permits are left.
func (n *name) fits(e *entry) bool {
	if len(n.holds) == 0 || n.owns(e) {
		return true
	}
	taken := int64(0)
	for _, h := range n.holds {
		if !h.spec.Shared {
			return false
		}
		taken += h.ticket.Weight
	}
	return e.spec.Shared && (n.kind != protocol.Semaphore || taken+e.ticket.Weight <= n.permits)
}

// owns reports whether the owner of a ticket, if it has one, holds the name in a way that excludes
// others, and no other owner holds it.
func (n *name) owns(e *entry) bool {
	if e.spec.Owner == "" {
		return false
	}
	owns := false
	for _, h := range n.holds {
		if h.spec.Owner != e.spec.Owner {
			return false
		}
		owns = owns || h.state == held && !h.spec.Shared
	}
	return owns
}

// reads reports whether the owner of a ticket that reads, if it has one, reads the name already.
func (n *name) reads(e *entry) bool {
	return e.spec.Owner != "" && e.spec.Shared && n.kind == protocol.ReadWrite &&
		slices.ContainsFunc(n.holds,
			func(h *entry) bool { return h.state == held && h.spec.Shared && h.spec.Owner == e.spec.Owner })
}

// refuses tells why a ticket that is new here can never hold, or not as long as others do. Nothing
// is changed.
func (n *name) refuses(e *entry) error {
	waits := find(n.queue, e.ticket.ID) != nil
	if n.permits != e.spec.Permits && !waits {
		return &protocol.Mismatch{Name: e.spec.Name, Have: n.permits, Want: e.spec.Permits}
	}
	if !waits && !e.spec.Shared && e.spec.Owner != "" && !n.owns(e) &&
		slices.ContainsFunc(n.holds,
			func(h *entry) bool { return h.state == held && h.spec.Shared && h.spec.Owner == e.spec.Owner }) {
		return &protocol.Upgrade{Name: e.spec.Name}
	}
	return nil
}

// admit lets in all tickets that fit, in order from the head of the queue, and sends them messages.
// It stops at the first one that does not fit. A ticket that no message reaches is passed over and
// keeps its place. A kept place that is closed, or that nobody listens for, is passed as if it were
// not there; if it could hold now it is closed. Self, if it is not nil, asks just now, in the queue
// or behind it. If it holds now, for its TTL, its hold is returned. Beside a hold of its own owner
// it does not wait.
//
//nolint:gocyclo // the definition of admission, in one piece
func (s *Server) admit(n *name, self *entry, now int64, ttl time.Duration) (held *entry) {
	if self != nil && (n.owns(self) || n.reads(self) && n.fits(self)) {
		n.leave(self.ticket.ID)
		held = s.hold(n, self, now, ttl)
	}
	stands := false
	for _, e := range slices.Clone(n.queue) {
		isSelf := self != nil && e.ticket.ID == self.ticket.ID
		if e.ticket.Keep > 0 && !isSelf && (e.closed || !e.heard()) {
			e.closed = e.closed || n.fits(e)
			continue
		}
		if !n.fits(e) {
			return held
		}
		switch {
		case isSelf:
			stands = true
			n.leave(e.ticket.ID)
			held = s.hold(n, self, now, ttl)
		case e.ticket.NoMessages || e.heard():
			s.grant(n, e, now)
		}
	}
	if self == nil && len(n.holds) == 0 {
		for _, e := range n.queue {
			if e.ticket.Keep == 0 { // no message reaches any of them: it learns of it when it asks
				s.grant(n, e, now)
				break
			}
		}
	}
	if self != nil && held == nil && !stands && n.fits(self) {
		held = s.hold(n, self, now, ttl)
	}
	return held
}

// grant hands the name over to a ticket of the queue, for its claim. A kept place stays, closed.
func (s *Server) grant(n *name, e *entry, now int64) {
	if e.ticket.Keep > 0 {
		e.closed = true
	} else {
		n.leave(e.ticket.ID)
	}
	h := s.hold(n, e, now, e.spec.Claim)
	h.offered = true
	if !e.ticket.NoMessages {
		e.tell(func(sink protocol.Sink) {
			sink.Granted(protocol.Grant{ID: h.ticket.ID, Token: h.token, Block: h.ticket.Block, At: now,
				Claim: e.spec.Claim})
		})
	}
}

// nudge makes tickets that were answered Busy ask again, if they fit now or may after a while.
func (n *name) nudge(after time.Duration) {
	n.busied = slices.DeleteFunc(n.busied, func(e *entry) bool {
		if after == 0 && !n.fits(e) {
			return false
		}
		e.client.tell(func(sink protocol.Sink) { sink.Nudge(e.ticket.ID, after) })
		return true
	})
}

// recall tells the processes of holds that keep a ticket out, if they are to be told. Only readers
// let each other in.
func (n *name) recall(self *entry) {
	for _, h := range n.holds {
		if (h.ticket.Retain || h.ticket.Wanted) && h.state == held && !(h.spec.Shared && self.spec.Shared) {
			h.tell(func(sink protocol.Sink) { sink.Recall(h.ticket.ID) })
		}
	}
}

// Downgrade implements protocol.Resource.
func (r *resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "downgrade", ask.Deadline, "")
	if err != nil {
		return protocol.Answer{}, err
	}
	h := find(n.holds, ask.Ticket.ID)
	if left := n.remainder(ask.Ticket.ID); h == nil && left != nil && left.state == broken {
		return protocol.Answer{}, left.breakage()
	}
	if h == nil {
		return n.busy(protocol.Busy, ask.Ticket.ID, now), nil
	}
	h.spec, h.until = r.spec, now+ask.TTL.Microseconds()
	h.offered, h.prolonged = false, now
	n.lapses(h)
	first := n.next()
	s.admit(n, nil, now, 0)
	n.nudgeFirst(first, now)
	n.nudge(0)
	return h.answer(now), nil
}

// Resize implements protocol.Resource.
func (r *resource) Resize(ctx context.Context, permits int64, deadline time.Time) error {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "resize", deadline, "")
	if err != nil {
		return err
	}
	n.permits = permits
	first := n.next()
	s.admit(n, nil, now, 0)
	n.nudgeFirst(first, now)
	n.nudge(0)
	return nil
}

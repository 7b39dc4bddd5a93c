package memory

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Look implements protocol.Subject.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "look", time.Time{}, "")
	if err != nil {
		return protocol.Standing{}, err
	}
	n.watchers = slices.DeleteFunc(n.watchers, func(e *entry) bool {
		return e.until <= now || watcher != nil && e.ticket.ID == watcher.ID
	})
	if watcher != nil {
		n.watchers = append(n.watchers, &entry{ticket: *watcher, client: r.client,
			until: now + r.spec.Life.Microseconds()})
	}
	return n.standing(now), nil
}

// Unwatch implements protocol.Subject.
func (r *resource) Unwatch(ctx context.Context, watcher protocol.Ticket) error {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _, err := r.open(ctx, "unwatch", time.Time{}, "")
	if err != nil {
		return err
	}
	n.watchers = slices.DeleteFunc(n.watchers, func(e *entry) bool { return e.ticket.ID == watcher.ID })
	return nil
}

func (n *name) watched(now int64) bool {
	return slices.ContainsFunc(n.watchers, func(e *entry) bool { return e.until > now })
}

// stir nudges the watchers, each once, because the name has changed.
func (n *name) stir() {
	watchers := n.watchers
	n.watchers = nil
	for _, e := range watchers {
		e.client.tell(func(sink protocol.Sink) { sink.Nudge(e.ticket.ID, 0) })
	}
}

// standing is what a Look finds.
func (n *name) standing(now int64) protocol.Standing {
	standing := protocol.Standing{Server: now, Holders: n.count(), Waiters: len(n.waiting()), Permits: n.permits}
	if h := n.holder(); h != nil {
		standing.Holder, standing.Token, standing.Since = h.party(), h.token, h.since
	}
	for _, h := range n.holds {
		standing.Taken += h.ticket.Weight
	}
	if l := n.latch; l != nil {
		standing.Latch, standing.Count = protocol.LatchSet, l.count
		if l.count == 0 {
			standing.Latch = protocol.LatchOpen
		}
	}
	return standing
}

// party is the holder or waiter of an entry. A hold without an owner is its own owner.
func (e *entry) party() protocol.Party {
	out := protocol.Party{Owner: e.spec.Owner, Label: e.spec.Label, Trace: e.ticket.Trace, Kept: e.ticket.Keep > 0,
		Retains: e.ticket.Retain}
	if e.spec.Owner == "" {
		out.Owner, out.Unnamed = string(e.ticket.ID), true
	}
	return out
}

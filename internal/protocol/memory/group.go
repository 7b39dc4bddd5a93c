package memory

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Ready implements protocol.Protocol.
func (c *Client) Ready(context.Context, string) error { return nil }

// Probe implements protocol.Protocol: memory can always serve.
func (c *Client) Probe(context.Context) error { return nil }

// AskAll implements protocol.Protocol. A name that others hold is answered Busy with its holder;
// the other names of the same request are answered Busy without one.
func (c *Client) AskAll(ctx context.Context, asks []protocol.ResourceAsk) ([]protocol.Answer, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	names, answers := make([]*name, len(asks)), make([]protocol.Answer, len(asks))
	taken := false
	for i, asking := range asks {
		r, ask := asking.Resource.(*resource), asking.Ask
		n, _, err := r.open(ctx, "ask", ask.Deadline, ask.Ticket.ID)
		if err != nil {
			return nil, err
		}
		names[i], answers[i] = n, protocol.Answer{Status: protocol.Busy, Server: now}
		s.admit(n, nil, now, 0)
		self := &entry{ticket: ask.Ticket, spec: r.spec}
		if free := find(n.holds, ask.Ticket.ID) != nil || n.owns(self) || len(n.waiting()) == 0 && n.fits(self); !free {
			if !taken {
				n.recall(self)
			}
			taken = true
			answers[i] = n.busy(protocol.Busy, ask.Ticket.ID, now)
		}
	}
	if taken {
		return answers, nil
	}
	for i, asking := range asks {
		r, ask := asking.Resource.(*resource), asking.Ask
		h := find(names[i].holds, ask.Ticket.ID)
		if h == nil {
			h = s.hold(names[i], &entry{ticket: ask.Ticket, spec: r.spec, client: c}, now, ask.TTL)
		}
		h.until = now + ask.TTL.Microseconds()
		h.offered, h.prolonged = false, now
		answers[i] = h.answer(now)
	}
	return answers, nil
}

package memory

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A latch is set until its count is 0, then open, then gone.
type latch struct {
	set     protocol.ID // the call that set it
	count   int64
	ttl     time.Duration
	until   int64 // server time: when it is gone
	counted map[protocol.ID]bool
}

// A latchResource is a name that is used as a latch.
type latchResource struct{ *resource }

// BindLatch implements protocol.Protocol.
func (c *Client) BindLatch(spec protocol.Spec) protocol.LatchResource {
	spec.Kind = protocol.Latch
	return latchResource{c.Bind(spec).(*resource)}
}

// Set implements protocol.LatchResource.
func (r latchResource) Set(ctx context.Context, id protocol.ID, count int64, ttl time.Duration,
	deadline time.Time) (protocol.Standing, bool, error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "set", deadline, "")
	if err != nil {
		return protocol.Standing{}, false, err
	}
	if l := n.latch; l != nil && (l.set == id || l.count > 0) {
		return n.standing(now), l.set == id, nil
	}
	n.latch = &latch{set: id, count: count, ttl: ttl, until: now + ttl.Microseconds(), counted: map[protocol.ID]bool{}}
	n.stir()
	return n.standing(now), true, nil
}

// CountDown implements protocol.LatchResource.
func (r latchResource) CountDown(ctx context.Context, id protocol.ID, deadline, _ time.Time) (protocol.Standing,
	error) {
	s := r.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := r.open(ctx, "count down", deadline, "")
	if err != nil {
		return protocol.Standing{}, err
	}
	if l := n.latch; l != nil && l.count > 0 && !l.counted[id] {
		l.counted[id] = true
		l.count--
		l.until = now + l.ttl.Microseconds()
		if l.count == 0 {
			n.stir()
		}
	}
	return n.standing(now), nil
}

package wire

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// idleChannelAfter is how long a channel of a slot stays after a caller last waited there.
const idleChannelAfter = 30 * time.Second

// SlotChannels are the channels of one subscription where channels are sharded, one a slot. They
// are added when they are needed, and removed when they were not for a while. SlotChannels are safe
// for concurrent use.
type SlotChannels struct {
	subscription Subscription
	timeout      time.Duration
	failure      func(error) error

	mu    sync.Mutex
	slots map[int]*slotChannel
}

// A slotChannel is the channel of a slot.
type slotChannel struct {
	name   string
	wanted time.Time     // when a caller last was to wait
	added  chan struct{} // closed when the server has confirmed the channel, or refused it
	since  time.Time
	err    error
}

// NewSlotChannels makes the channels of a subscription that has none. No call takes longer than the
// timeout. Errors of the subscription are returned as failure makes them.
func NewSlotChannels(subscription Subscription, timeout time.Duration, failure func(error) error) *SlotChannels {
	return &SlotChannels{subscription: subscription, timeout: timeout, failure: failure,
		slots: make(map[int]*slotChannel)}
}

// Ensure returns when the server has confirmed the channel of a slot, with the time since when
// messages arrive there. The error is one of the subscription, or the end of ctx. After an error of
// the subscription the next call tries again.
func (s *SlotChannels) Ensure(ctx context.Context, slot int, name string) (since time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c, fresh, idle := s.want(slot, name)
	for _, name := range idle {
		_ = s.subscription.Remove(ctx, name)
	}
	if fresh {
		go s.add(slot, c)
	}
	select {
	case <-c.added:
		return c.since, c.err
	case <-ctx.Done():
		return time.Time{}, protocol.EndOf(ctx)
	}
}

// want notes that a caller is to wait at a slot, and takes out the names of idle channels.
func (s *SlotChannels) want(slot int, name string) (c *slotChannel, fresh bool, idle []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	c = s.slots[slot]
	fresh = c == nil
	if fresh {
		c = &slotChannel{name: name, added: make(chan struct{})}
		s.slots[slot] = c
	}
	c.wanted = now
	for slot, other := range s.slots {
		if now.Sub(other.wanted) > idleChannelAfter {
			delete(s.slots, slot)
			idle = append(idle, other.name)
		}
	}
	return c, fresh, idle
}

// add subscribes a channel for all callers that want it: none of them can cancel it for the others.
func (s *SlotChannels) add(slot int, c *slotChannel) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if err := s.subscription.Add(ctx, c.name); err != nil {
		c.err = s.failure(err)
		s.mu.Lock()
		delete(s.slots, slot) // the next caller tries again
		s.mu.Unlock()
	}
	c.since = time.Now()
	close(c.added)
}

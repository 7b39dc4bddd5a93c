package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// A subscription keeps the channels that are wanted, each on a line to a server: all on one, or, on
// a cluster, those with a hash tag on the line to the node that serves their slot.
type subscription struct {
	sink  *serialSink
	plain *line
	home  *channelRouter // nil: not on a cluster
	works sync.WaitGroup

	mu       sync.Mutex // of the lines too
	over     bool
	channels map[string]*channel // those wanted
}

// A channel is one that was added and not removed.
type channel struct {
	name    string
	line    *line // nil: on its way to one
	on      bool  // confirmed on the present connection of its line
	was     bool  // confirmed on this or an earlier one
	waiting int   // calls of Add
	verdict *verdict
	route   route
}

// A verdict tells the waiting calls of Add how it ended.
type verdict struct {
	done chan struct{}
	err  error
}

// settle ends the waiting for the channel. subscription.mu is held.
func (c *channel) settle(err error) {
	c.verdict.err = err
	close(c.verdict.done)
	c.verdict = &verdict{done: make(chan struct{})}
}

func newSubscription(sink store.Sink, open func() *redis.PubSub) *subscription {
	s := &subscription{sink: &serialSink{sink: sink}, channels: map[string]*channel{}}
	s.plain = newLine(s, open)
	return s
}

// Add returns nil when the server has confirmed the channel on the connection that is in use. It
// fails at once with the server's words when it refuses the channel, and when no connection can be
// made; the channel is then not subscribed, unless it was before. When ctx is over first the same
// holds.
func (s *subscription) Add(ctx context.Context, name string) error {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return redis.ErrClosed
	}
	c := s.channels[name]
	if c != nil && c.on {
		s.mu.Unlock()
		return nil
	}
	if c == nil {
		c = &channel{name: name, verdict: &verdict{done: make(chan struct{})}}
		s.channels[name] = c
		if s.home == nil || !s.home.send(c) {
			s.plain.adopt(c)
		}
	} else if c.line != nil {
		c.line.hasten()
	}
	c.waiting++
	v := c.verdict
	s.mu.Unlock()

	select {
	case <-v.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.waiting--
	select {
	case <-v.done:
		return v.err
	default:
	}
	if c.waiting == 0 && !c.was {
		s.drop(c)
	}
	return fmt.Errorf("redisstore: channel %q is not confirmed: %w", name, ctx.Err())
}

// Remove gives the channel up. It waits for nothing: messages that are on their way may still come.
func (s *subscription) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		c.settle(fmt.Errorf("redisstore: channel %q was removed", name))
		s.drop(c)
	}
	return nil
}

// Close ends the subscription: calls of Add fail, the connections are closed and the goroutines are
// gone when it returns. It must not be called by the sink. Further calls do nothing.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.over = true // too late for another goroutine
	s.plain.cancel()
	if s.home != nil {
		s.home.close()
	}
	for _, c := range s.channels {
		c.settle(redis.ErrClosed)
	}
	s.mu.Unlock()
	s.works.Wait()
	return nil
}

// drop makes the channel unwanted, whatever its state. mu is held.
func (s *subscription) drop(c *channel) {
	if s.channels[c.name] != c {
		return
	}
	delete(s.channels, c.name)
	if c.line != nil {
		c.line.drop(c)
	}
}

// A serialSink lets several lines into a sink one after the other.
type serialSink struct {
	mu   sync.Mutex
	sink store.Sink
}

func (t *serialSink) Message(channel, payload string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sink.Message(channel, payload)
}

func (t *serialSink) Gap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sink.Gap()
}

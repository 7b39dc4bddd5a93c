package rueidisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// A subscription keeps the channels that are wanted, each on a line to a server: all on one, or, on
// a cluster, those with a hash tag on the line to the node that serves their slot.
type subscription struct {
	sink   store.Sink
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	works  sync.WaitGroup
	plain  *line
	home   *channelRouter // nil: not on a cluster
	quiet  time.Duration
	linger time.Duration

	telling sync.Mutex // held while the sink is told something

	mu       sync.Mutex // of the lines and the channelRouter too
	channels map[string]*channel
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

// newSubscription makes one whose plain line goes to the server of the client that node returns.
func newSubscription(sink store.Sink, node func(context.Context) (rueidis.Client, error)) *subscription {
	s := &subscription{sink: sink, quiet: quiet, linger: linger, channels: map[string]*channel{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.plain = newLine(s, node)
	return s
}

// Add returns nil when the server has confirmed the channel on the connection that is in use. It
// fails at once with the server's words when it refuses the channel, and when no connection can be
// made; the channel is then not subscribed, unless it was before. When ctx is over first the same
// holds.
func (s *subscription) Add(ctx context.Context, name string) error {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return rueidis.ErrClosing
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
	return fmt.Errorf("rueidisstore: channel %q is not confirmed: %w", name, ctx.Err())
}

// Remove gives the channel up. It waits for nothing: messages that are on their way may still come.
func (s *subscription) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		c.settle(fmt.Errorf("rueidisstore: channel %q was removed", name))
		s.drop(c)
	}
	return nil
}

// Close ends the subscription: calls of Add fail, and the sink hears nothing more once it has
// returned. Connections are closed in the background, as that may wait for a silent server. It must
// not be called by the sink. Further calls do nothing.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.cancel() // too late for another goroutine
	for _, c := range s.channels {
		c.settle(rueidis.ErrClosing)
	}
	s.mu.Unlock()
	s.works.Wait()
	s.tell(func() {}) // what the sink was being told
	return nil
}

// tell has the sink told something, one at a time, until Close.
func (s *subscription) tell(what func()) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.ctx.Err() == nil {
		what()
	}
}

// work starts a goroutine of the subscription, unless it is closed. mu is held.
func (s *subscription) work(started *bool, run func()) {
	if !*started && s.ctx.Err() == nil {
		*started = true
		s.works.Go(run)
	}
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

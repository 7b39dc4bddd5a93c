// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast"
)

// A subscription keeps one connection for messages while a channel is wanted, and makes it again when it is lost.
//
// Its keeper, a goroutine that starts with the first Add, is the only one that connects and writes. The connection is a
// dedicated one of the client: Receive would subscribe again by itself, and nobody could tell when all channels are
// confirmed.
type subscription struct {
	sink   holdfast.Sink
	node   func(context.Context) (valkey.Client, error) // whose connection to take
	ctx    context.Context                              // ends with Close
	cancel context.CancelFunc
	keeper sync.WaitGroup
	wake   chan struct{} // the keeper has something to look at; holds one
	quiet  time.Duration
	linger time.Duration

	telling sync.Mutex // held while the sink is told something

	mu       sync.Mutex
	started  bool
	channels map[string]*channel // those wanted
	queue    []question          // for the present connection, not yet asked
	serving  bool                // there is a connection, or one is being made
	gap      bool                // messages may have been missed, and the sink was not told
	hurry    bool                // Add was called since the last attempt to connect
	emptied  time.Time           // when the last channel was removed
}

// A channel is one that was added and not removed.
type channel struct {
	name    string
	on      bool // confirmed on the present connection
	was     bool // confirmed on this or an earlier one
	waiting int  // calls of Add
	verdict *verdict
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

func newSubscription(sink holdfast.Sink, node func(context.Context) (valkey.Client, error)) *subscription {
	s := &subscription{sink: sink, node: node, quiet: quiet, linger: linger, wake: make(chan struct{}, 1), channels: map[string]*channel{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Add returns nil when the server has confirmed the channel on the connection that is in use. It fails at once with
// the server's words when it refuses the channel, and when no connection can be made; the channel is then not
// subscribed, unless it was before. When ctx is over first the same holds.
func (s *subscription) Add(ctx context.Context, name string) error {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return valkey.ErrClosing
	}
	c := s.channels[name]
	if c != nil && c.on {
		s.mu.Unlock()
		return nil
	}
	if c == nil {
		c = &channel{name: name, verdict: &verdict{done: make(chan struct{})}}
		s.channels[name] = c
		s.ask(question{subscribe, c})
	}
	c.waiting++
	s.hurry = true
	v := c.verdict
	if !s.started {
		s.started = true
		s.keeper.Go(s.keep)
	}
	s.mu.Unlock()
	s.nudge()

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
	return fmt.Errorf("valkeystore: channel %q is not confirmed: %w", name, ctx.Err())
}

// Remove gives the channel up. It waits for nothing: messages that are on their way may still come.
func (s *subscription) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		c.settle(fmt.Errorf("valkeystore: channel %q was removed", name))
		s.drop(c)
	}
	return nil
}

// Close ends the subscription: calls of Add fail, and the sink hears nothing more once it has returned. The connection is
// closed in the background, as that may wait for a silent server. It must not be called by the sink. Further calls
// do nothing.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.started = true // too late for a keeper
	s.cancel()
	for _, c := range s.channels {
		c.settle(valkey.ErrClosing)
	}
	s.mu.Unlock()
	s.keeper.Wait()
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

// drop makes the channel unwanted, whatever its state. mu is held.
func (s *subscription) drop(c *channel) {
	if s.channels[c.name] != c {
		return
	}
	delete(s.channels, c.name)
	if len(s.channels) == 0 {
		s.emptied = time.Now()
	}
	s.ask(question{unsubscribe, c})
	s.nudge()
}

// ask queues a question for the present connection, if there is one: the next begins with its own. mu is held.
func (s *subscription) ask(q question) {
	if s.serving {
		s.queue = append(s.queue, q)
	}
}

// nudge makes the keeper look.
func (s *subscription) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

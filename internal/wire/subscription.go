package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrSubscriptionClosed is what Add says after Close.
var ErrSubscriptionClosed = errors.New("the subscription is closed")

// A subscription keeps the channels that are wanted, each on a connection: all on one, or, on a
// cluster, those with a hash tag on the connection to the node that serves their slot.
//
// One goroutine, that of run, owns all of its state. Others send it functions to run. It never
// waits for a server: each connection has a goroutine that connects and writes, and that reports
// back.
type subscription struct {
	router *router
	sink   *serialSink
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	works  sync.WaitGroup
	inbox  chan func()

	mu      sync.Mutex
	started bool
	closed  bool

	// Owned by run.
	channels map[string]*channel
	plain    *pubsubConn
	places   *channelRouter
}

// A channel is one that was added and not removed.
type channel struct {
	name            string
	conn            *pubsubConn // nil: unplaced
	on              bool        // confirmed on the present connection
	confirmedBefore bool        // confirmed on this connection or an earlier one
	waiters         []*waiter

	retryAt time.Time     // not to be placed before
	pause   time.Duration // before the last attempt to place it; zero: none failed
}

// A waiter is a call of Add.
type waiter struct{ done chan error } // of one

// resolve ends the waiting for the channel.
func (c *channel) resolve(err error) {
	for _, w := range c.waiters {
		w.done <- err
	}
	c.waiters = nil
}

func newSubscription(r *router, sink Sink) *subscription {
	s := &subscription{router: r, sink: &serialSink{sink: sink}, inbox: make(chan func()), channels: map[string]*channel{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.plain = newPubsubConn(s, s.anyNode())
	s.places = newChannelRouter(s)
	return s
}

// anyNode returns a function that names the node for channels that are not sharded. On a cluster
// that is some master, as a message that is not sharded goes to all nodes.
func (s *subscription) anyNode() func(context.Context) (string, error) {
	last := ""
	return func(ctx context.Context) (string, error) {
		cluster, err := s.router.isCluster(ctx)
		if err != nil || !cluster {
			return "", err
		}
		table, err := s.router.slots.known(ctx, false)
		if err != nil {
			return "", err
		}
		last, err = table.anyMaster(last)
		return last, err
	}
}

// Add implements Subscription.
func (s *subscription) Add(ctx context.Context, name string) error {
	w := &waiter{done: make(chan error, 1)}
	if !s.start() || !s.post(func() { s.add(name, w) }) {
		return ErrSubscriptionClosed
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	if !s.post(func() { s.giveUp(name, w, ctx.Err()) }) {
		return ErrSubscriptionClosed
	}
	return <-w.done
}

// Remove implements Subscription. It waits for nothing.
func (s *subscription) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if started {
		s.post(func() {
			if c := s.channels[name]; c != nil {
				c.resolve(fmt.Errorf("channel %q was removed", name))
				s.drop(c)
			}
		})
	}
	return nil
}

// Close implements Subscription. Its goroutines are gone when it returns.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.closed = true // too late for start
	s.mu.Unlock()
	s.cancel()
	s.sink.close()
	s.works.Wait()
	return nil
}

// start starts run with the first channel. It is false after Close.
func (s *subscription) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if !s.started {
		s.started = true
		s.works.Go(s.run)
	}
	return true
}

// post has run run f. It is false after Close, and f does not run.
func (s *subscription) post(f func()) bool {
	select {
	case s.inbox <- f:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// run owns the state until Close.
func (s *subscription) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		timer.Reset(s.advance(now).Sub(now))
		select {
		case f := <-s.inbox:
			f()
		case <-timer.C:
		case <-s.ctx.Done():
			for _, c := range s.channels {
				c.resolve(ErrSubscriptionClosed)
			}
			return
		}
	}
}

// never is when nothing is to be done before something happens.
const never = time.Hour

// advance does what is due, and returns when it is to be called again at the latest.
func (s *subscription) advance(now time.Time) (wake time.Time) {
	wake = now.Add(never)
	for _, step := range []func(time.Time) time.Time{s.places.advance, s.plain.advance} {
		if at := step(now); at.Before(wake) {
			wake = at
		}
	}
	for _, conn := range s.places.conns {
		if at := conn.advance(now); at.Before(wake) {
			wake = at
		}
	}
	return wake
}

// add takes a call of Add. A call for a channel that is resting ends the rest: the caller paces the
// attempts, and is told of each.
func (s *subscription) add(name string, w *waiter) {
	c := s.channels[name]
	if c != nil && c.on {
		w.done <- nil
		return
	}
	if c == nil {
		c = &channel{name: name}
		s.channels[name] = c
		s.places.add(c)
	} else if c.conn != nil {
		c.conn.hasten()
	}
	c.waiters = append(c.waiters, w)
}

// giveUp ends a call of Add whose context is over, unless it has ended otherwise. A channel that
// was never confirmed and that no other call waits for is given up with it.
func (s *subscription) giveUp(name string, w *waiter, why error) {
	c := s.channels[name]
	if c == nil {
		return // and so the call has ended
	}
	i := slices.Index(c.waiters, w)
	if i < 0 {
		return
	}
	c.waiters = slices.Delete(c.waiters, i, i+1)
	if len(c.waiters) == 0 && !c.confirmedBefore {
		s.drop(c)
	}
	w.done <- fmt.Errorf("channel %q is not confirmed: %w", name, why)
}

// drop makes the channel unwanted, whatever its state.
func (s *subscription) drop(c *channel) {
	if s.channels[c.name] != c {
		return
	}
	delete(s.channels, c.name)
	if c.conn != nil {
		c.conn.giveUp(c)
	}
}

// A serialSink lets several connections into a sink one after the other, until it is closed.
type serialSink struct {
	mu     sync.Mutex
	sink   Sink
	closed bool
}

func (s *serialSink) message(channel, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sink.Message(channel, payload)
	}
}

func (s *serialSink) gap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sink.Gap()
	}
}

func (s *serialSink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

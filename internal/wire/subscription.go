package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ErrSubscriptionClosed is what Add says after Close.
var ErrSubscriptionClosed = errors.New("the subscription is closed")

// idleWake is how soon advance is called again if nothing is due before.
const idleWake = time.Hour

// A subscription keeps the channels that are wanted, each on a connection: all on one, or, on a
// cluster, those with a hash tag on the connection to the node that serves their slot.
//
// One goroutine, that of run, owns the channels and the state of the connections. Other goroutines
// post functions to it. It never waits for a server: each connection has a goroutine that connects
// and writes, and channelRouter.locate asks the cluster on a goroutine of its own.
type subscription struct {
	router     *router
	sink       *serialSink
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	goroutines sync.WaitGroup // run, and all that run starts; Close waits for them
	inbox      chan func()    // unbuffered, so run runs every function that it has taken

	mu      sync.Mutex // guards started and closed, so that run is not started after Close
	started bool       // run was started
	closed  bool       // Close was called

	// Owned by run. Add, Remove and cancelled calls reach them by post alone.
	channels  map[string]*channel // those that are wanted, by name
	unsharded *pubsubConn         // for channels that any node can serve
	placement *channelRouter      // the connections to the nodes of a cluster
}

// A channel is one that was added. While it is neither removed nor dropped, it is in
// subscription.channels. Run owns it.
type channel struct {
	name            string
	conn            *pubsubConn  // nil: unplaced
	confirmed       bool         // on the present connection
	confirmedBefore bool         // on this connection or an earlier one
	waiters         []chan error // the calls of Add: each gets one result, and has room for it

	retryAt time.Time     // while it is unplaced: not to be placed before
	backoff time.Duration // the pause before retryAt, doubled by each retry; zero: none
}

// interrupted reports whether messages on the channel may be missed now: it was confirmed before,
// and is not confirmed on the present connection.
func (c *channel) interrupted() bool { return c.confirmedBefore && !c.confirmed }

// resolve ends all calls of Add for the channel.
func (c *channel) resolve(err error) {
	for _, w := range c.waiters {
		w <- err
	}
	c.waiters = nil
}

func newSubscription(r *router, sink Sink) *subscription {
	s := &subscription{router: r, sink: &serialSink{sink: sink}, inbox: make(chan func()),
		channels: map[string]*channel{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.unsharded = newPubsubConn(s, s.anyNode())
	s.placement = newChannelRouter(s)
	return s
}

// anyNode returns a function that names the node for channels that are not sharded. On a cluster it
// is any master, as a message that is not sharded goes to all nodes. It is another one each time,
// as the last one may be gone.
func (s *subscription) anyNode() func(context.Context) (string, error) {
	var last atomic.Value // string; the links of a lost connection and of the next may be here at once
	return func(ctx context.Context) (string, error) {
		cluster, err := s.router.isCluster(ctx)
		if err != nil || !cluster {
			return "", err
		}
		table, err := s.router.slots.known(ctx, false)
		if err != nil {
			return "", err
		}
		before, _ := last.Load().(string)
		node, err := table.anyMaster(before)
		last.Store(node)
		return node, err
	}
}

// Add implements Subscription.
func (s *subscription) Add(ctx context.Context, name string) error {
	w := make(chan error, 1)
	if !s.start() || !s.post(func() { s.add(name, w) }) {
		return ErrSubscriptionClosed
	}
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
	}
	if !s.post(func() { s.cancelAdd(name, w, ctx.Err()) }) {
		return ErrSubscriptionClosed
	}
	return <-w // after cancelAdd there is a result
}

// Remove implements Subscription. It does not wait for the server.
func (s *subscription) Remove(_ context.Context, name string) error {
	s.postIfStarted(func() {
		if c := s.channels[name]; c != nil {
			c.resolve(fmt.Errorf("channel %q was removed", name))
			s.drop(c)
		}
	})
	return nil
}

// reconnect makes the connection to a node again: the present one may lead to a wrong server.
func (s *subscription) reconnect(node string) {
	s.postIfStarted(func() {
		conn := s.placement.conns[node]
		if conn == nil && s.router.kind.Load() == kindSingle {
			conn = s.unsharded
		}
		if conn != nil && conn.link != nil {
			conn.lost(conn.link, errMisled)
		}
	})
}

// postIfStarted is post, unless no channel was ever added: then there is nothing to do.
func (s *subscription) postIfStarted(f func()) {
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if started {
		s.post(f)
	}
}

// Close implements Subscription. Its goroutines are gone when it returns.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.router.forget(s)
	s.cancel()
	s.sink.close()
	s.goroutines.Wait()
	return nil
}

// start starts run, when the first channel is added. It is false after Close.
func (s *subscription) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if !s.started {
		s.started = true
		s.goroutines.Go(s.run)
	}
	return true
}

// post hands f to run, and waits until run takes it. If it returns true, f runs. It returns false
// if Close came first. Functions that run itself calls must not call post, as run would wait for
// itself.
func (s *subscription) post(f func()) bool {
	select {
	case s.inbox <- f:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// run owns the state until Close. It calls advance after each function that was posted, and when
// the time has come that advance returned.
func (s *subscription) run() {
	timer := protocol.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		protocol.ResetTimer(timer, s.advance(now).Sub(now))
		select {
		case f := <-s.inbox:
			f()
		case <-timer.C:
		case <-s.ctx.Done():
			for _, c := range s.channels {
				c.resolve(ErrSubscriptionClosed)
			}
			return // the connections end with ctx
		}
	}
}

// advance places channels and advances all connections, which connect, write and check that their
// servers are alive. It returns when to call it again at the latest.
func (s *subscription) advance(now time.Time) (wake time.Time) {
	wake = now.Add(idleWake)
	wake = earlier(wake, s.placement.advance(now))
	wake = earlier(wake, s.unsharded.advance(now))
	for _, conn := range s.placement.conns {
		wake = earlier(wake, conn.advance(now))
	}
	return wake
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// add begins a call of Add. If the connection of the channel was lost, Add reconnects at once
// instead of waiting for the backoff: the caller retries Add at its own pace.
func (s *subscription) add(name string, w chan error) {
	c := s.channels[name]
	switch {
	case c == nil:
		c = &channel{name: name}
		s.channels[name] = c
		s.placement.add(c)
	case c.confirmed:
		w <- nil
		return
	case c.conn != nil:
		c.conn.connectNow()
	}
	c.waiters = append(c.waiters, w)
}

// cancelAdd ends a call of Add whose context is over, unless it has a result. A channel that was
// never confirmed is dropped with the last call that waits for it.
func (s *subscription) cancelAdd(name string, w chan error, why error) {
	c := s.channels[name]
	if c == nil {
		return // the call has a result: a channel that was dropped has no waiters
	}
	i := slices.Index(c.waiters, w)
	if i < 0 {
		return // the call has a result
	}
	c.waiters = slices.Delete(c.waiters, i, i+1)
	if len(c.waiters) == 0 && !c.confirmedBefore {
		s.drop(c)
	}
	w <- fmt.Errorf("channel %q is not confirmed: %w", name, why)
}

// wants reports whether the channel was neither removed nor dropped.
func (s *subscription) wants(c *channel) bool { return s.channels[c.name] == c }

// drop forgets a channel that no call of Add waits for, and unsubscribes it.
func (s *subscription) drop(c *channel) {
	if !s.wants(c) {
		return
	}
	delete(s.channels, c.name)
	if c.conn != nil {
		c.conn.unsubscribe(c)
	}
}

// A serialSink lets several connections into a sink one after the other, until it is closed. They
// call it on goroutines of the adapter, and run calls it for gaps.
type serialSink struct {
	mu     sync.Mutex // also held while the sink is called
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

// close waits for the call that is under way, and lets no other in.
func (s *serialSink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

const (
	subscribeTimeout = 2 * time.Second // of one try
	subscribeAgain   = time.Second     // after a try that failed
)

// open subscribes to one channel. The error is one of SubscribeFailure, and then nothing is open.
func open(ctx context.Context, s Store, channel string, sink Sink) (Subscription, error) {
	subscription, err := s.Subscribe(ctx, sink)
	if err == nil {
		if err = subscription.Add(ctx, channel); err == nil {
			return subscription, nil
		}
		_ = subscription.Close()
	}
	return nil, SubscribeFailure(channel, err)
}

// Subscribe is subscribed to one channel until ctx ends. It tries again while that fails, and then
// tells the sink of a gap. It calls first with the outcome of the first try.
func Subscribe(ctx context.Context, s Store, channel string, sink Sink, first func(error)) {
	for again := false; ; again = true {
		try, cancel := context.WithTimeout(ctx, subscribeTimeout)
		subscription, err := open(try, s, channel, sink)
		cancel()
		if !again {
			first(err)
		}
		if err == nil {
			if again {
				sink.Gap()
			}
			<-ctx.Done()
			_ = subscription.Close()
			return
		}
		timer := time.NewTimer(subscribeAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

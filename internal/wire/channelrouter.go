package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

const (
	// The pause before a channel is placed again begins with the shortest, and doubles up to the
	// longest.
	minPlaceBackoff, maxPlaceBackoff = 10 * time.Millisecond, 250 * time.Millisecond

	// locateTimeout bounds one locate.
	locateTimeout = time.Second

	// recheckEvery is how often channels are compared with the slot table, as a node that hangs
	// neither takes a channel away nor closes its connection. It costs no request: the table is
	// reread for other reasons, such as a failed request.
	recheckEvery = 250 * time.Millisecond
)

// errNoMaster is why a channel cannot be placed although the slots are known.
var errNoMaster = errors.New("no node serves the slot of the channel")

// A channelRouter places channels: it attaches each to the connection that it belongs on. A channel
// with a hash tag belongs, on a cluster, on the connection to the node that serves its slot. All
// others belong on the unsharded connection, and so do all channels if the servers know no sharded
// ones. Slots move and nodes die, so a channel may have to be placed again.
//
// All fields belong to the goroutine of the subscription. Two functions wait for a server and run
// on goroutines of their own: locate, and the one that connTo makes. They use nothing of the state
// but sub.router and sub.ctx, which do not change. Locate hands its result over by sub.post.
type channelRouter struct {
	sub        *subscription
	noSharding bool                   // a server said that it knows no sharded channels
	unplaced   []*channel             // to be placed by advance; some may not be wanted any more
	locating   bool                   // locate is under way, with channels taken out of unplaced
	conns      map[string]*pubsubConn // the sharded ones, by the node's address
	recheckAt  time.Time              // when relocateMoved is due
}

func newChannelRouter(s *subscription) *channelRouter {
	return &channelRouter{sub: s, conns: map[string]*pubsubConn{}}
}

// add attaches a new channel if it is known to belong on the unsharded connection. Otherwise it
// queues the channel, and the next advance has it placed.
func (r *channelRouter) add(c *channel) {
	if r.isUnsharded(c, r.sub.router.kind.Load()) {
		r.sub.unsharded.attach(c)
		return
	}
	r.unplaced = append(r.unplaced, c)
}

// isUnsharded reports whether a channel belongs on the unsharded connection. It is false while that
// is not known.
func (r *channelRouter) isUnsharded(c *channel, kind int32) bool {
	switch kind {
	case kindSingle:
		return true
	case kindCluster:
		_, tagged := hashTag(c.name)
		return !tagged || r.noSharding
	}
	return false
}

// retryPlacement has a channel placed again after a pause: its node is not known, or its connection
// gave it away. If the servers know no sharded channels, its place is known and needs no pause.
func (r *channelRouter) retryPlacement(c *channel) {
	if r.noSharding { // a server may have said so since the channel was placed
		r.sub.unsharded.attach(c)
		return
	}
	c.backoff = min(max(2*c.backoff, minPlaceBackoff), maxPlaceBackoff)
	c.retryAt = time.Now().Add(c.backoff)
	r.unplaced = append(r.unplaced, c)
}

// advance begins to place the channels whose time has come. It returns when to call it again at the
// latest. Run also calls it after each function that was posted.
func (r *channelRouter) advance(now time.Time) (wake time.Time) {
	wake = now.Add(idleWake)
	if len(r.conns) > 0 && len(r.sub.channels) > 0 { // otherwise no channel can have moved
		if !now.Before(r.recheckAt) {
			r.recheckAt = now.Add(recheckEvery)
			r.relocateMoved(now)
		}
		wake = r.recheckAt
	}
	if r.locating {
		return wake // locate posts its result, and so advance is called then
	}
	due, retryAt := r.takeDue(now)
	if len(due) > 0 {
		r.locating = true
		// A channel with a pause is placed again: the slot table that it was placed by may be old.
		reread := slices.ContainsFunc(due, func(c *channel) bool { return c.backoff > 0 })
		r.sub.goroutines.Go(func() { r.locate(due, reread) })
	}
	return earlier(wake, retryAt)
}

// takeDue takes out the unplaced channels whose time has come, and returns when it comes for the
// next of those that stay. It drops channels that are not wanted any more.
func (r *channelRouter) takeDue(now time.Time) (due []*channel, next time.Time) {
	next = now.Add(idleWake)
	var later []*channel
	for _, c := range r.unplaced {
		if !r.sub.wants(c) {
			continue // it was removed meanwhile
		}
		if now.Before(c.retryAt) {
			later = append(later, c)
			next = earlier(next, c.retryAt)
		} else {
			due = append(due, c)
		}
	}
	r.unplaced = later
	return due, next
}

// relocateMoved takes channels off the connections to nodes that do not serve them any more, by the
// latest slot table, and queues them to be placed at once.
func (r *channelRouter) relocateMoved(now time.Time) {
	table := r.sub.router.slots.latest()
	for address, conn := range r.conns {
		for _, c := range conn.channels {
			if master := table.master(slotOfKey(c.name)); master != "" && master != address {
				conn.unsubscribe(c) // deletes from conn.channels, which a range over a map allows
				c.retryAt, c.backoff = now, 0
				r.unplaced = append(r.unplaced, c)
			}
		}
	}
}

// A location is what locate found out.
type location struct {
	kind  int32      // of the servers; kindUnknown if they did not answer
	table *slotTable // of a cluster, else nil; the latest one, even if it could not be reread
	err   error      // why the kind is unknown, or why the table could not be read
}

// master returns the address of the node that serves a channel by its slot; empty if none is known.
func (l location) master(c *channel) string {
	if l.kind != kindCluster {
		return ""
	}
	return l.table.master(slotOfKey(c.name))
}

// locate finds out where channels are served, and has those that are due placed. It runs on a
// goroutine of its own. If reread, the slots of a cluster are read anew.
func (r *channelRouter) locate(due []*channel, reread bool) {
	ctx, cancel := context.WithTimeout(r.sub.ctx, locateTimeout)
	defer cancel()
	at := location{kind: kindUnknown}
	cluster, err := r.sub.router.isCluster(ctx)
	switch {
	case err != nil:
		at.err = err
	case cluster:
		at.kind = kindCluster
		at.table, at.err = r.sub.router.slots.known(ctx, reread)
	default:
		at.kind = kindSingle
	}
	r.sub.post(func() {
		r.locating = false
		for _, c := range due {
			if r.sub.wants(c) {
				r.place(c, at)
			}
		}
		if at.kind == kindCluster {
			r.prune(at.table)
		}
	})
}

// place attaches a channel to the connection that it belongs on. If its node is not known, what
// happens depends on whether the channel was confirmed before. If so, its callers rely on it and do
// not add it again, so the router retries. Otherwise the calls of Add for it fail, and their
// callers may retry.
func (r *channelRouter) place(c *channel, at location) {
	if r.isUnsharded(c, at.kind) {
		r.sub.unsharded.attach(c)
		return
	}
	if address := at.master(c); address != "" {
		r.connTo(address, c.name).attach(c)
		return
	}
	if c.confirmedBefore {
		r.retryPlacement(c)
		return
	}
	err := at.err
	if err == nil {
		err = errNoMaster
	}
	c.resolve(err)
	r.sub.drop(c)
}

// connTo returns the connection to a node, and makes it if there is none. The name is that of any
// channel that the node serves: a client that does not know the node yet discovers it by that.
func (r *channelRouter) connTo(address, channelName string) *pubsubConn {
	if conn := r.conns[address]; conn != nil {
		return conn
	}
	conn := newPubsubConn(r.sub, func(ctx context.Context) (string, error) {
		if r.sub.router.slots.latest().met[address] {
			return address, nil
		}
		return address, r.sub.router.meet(ctx, address, channelName)
	})
	conn.sharded = true
	r.conns[address] = conn
	return conn
}

// prune forgets the connections to nodes that left the cluster, once they have no channels. Other
// connections without channels close by themselves, and are kept for the next channel.
func (r *channelRouter) prune(table *slotTable) {
	for address, conn := range r.conns {
		if len(conn.channels) == 0 && !table.has(address) {
			conn.disconnect()
			delete(r.conns, address)
		}
	}
}

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

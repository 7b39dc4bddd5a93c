package wire

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// The pause before a channel is placed again begins with the shortest, and doubles up to the
	// longest.
	minPlaceBackoff, maxPlaceBackoff = 10 * time.Millisecond, 250 * time.Millisecond

	// locateTimeout bounds one question where channels are served.
	locateTimeout = time.Second

	// recheckEvery is how often channels are compared with the slot table, as a node that hangs
	// neither takes a channel away nor closes its connection. It costs no request.
	recheckEvery = 250 * time.Millisecond
)

// A channelRouter finds the connection for each channel. On a cluster, a channel with a hash tag
// belongs on the connection to the node that serves its slot. Slots move and nodes die, so the
// router tries until a node takes the channel. Its state belongs to the goroutine of the
// subscription. What waits for a server runs on other goroutines: locate, and the function that
// connTo makes.
type channelRouter struct {
	sub        *subscription
	noSharding bool                   // the servers know no sharded channels
	unplaced   []*channel             // to be placed; some may not be wanted any more
	locating   bool                   // locate is under way, with the channels that it was given
	conns      map[string]*pubsubConn // by the node's address
	recheckAt  time.Time
}

func newChannelRouter(s *subscription) *channelRouter {
	return &channelRouter{sub: s, conns: map[string]*pubsubConn{}}
}

// add attaches a new channel to its connection, or queues it until its node is known.
func (r *channelRouter) add(c *channel) {
	if r.isUnsharded(c, r.sub.router.kind.Load()) {
		r.sub.unsharded.attach(c)
		return
	}
	r.unplaced = append(r.unplaced, c)
}

// isUnsharded tells whether a channel is known to belong on the unsharded connection.
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

// requeue queues a channel that could not be placed, or that its connection gave away, to be placed
// after a pause.
func (r *channelRouter) requeue(c *channel) {
	if r.noSharding { // the servers may have said so since the channel was placed
		r.sub.unsharded.attach(c)
		return
	}
	c.backoff = min(max(2*c.backoff, minPlaceBackoff), maxPlaceBackoff)
	c.retryAt = time.Now().Add(c.backoff)
	r.unplaced = append(r.unplaced, c)
}

// advance places the channels whose time has come, and returns when to call it again.
func (r *channelRouter) advance(now time.Time) (wake time.Time) {
	wake = now.Add(idleWake)
	if len(r.conns) > 0 && len(r.sub.channels) > 0 {
		if !now.Before(r.recheckAt) {
			r.recheckAt = now.Add(recheckEvery)
			r.relocateMoved(now)
		}
		wake = r.recheckAt
	}
	if r.locating {
		return wake // its end is posted, and calls advance
	}
	due, retryAt := r.takeDue(now)
	if len(due) > 0 {
		r.locating = true
		reread := slices.ContainsFunc(due, func(c *channel) bool { return c.backoff > 0 }) // it failed
		r.sub.goroutines.Go(func() { r.locate(due, reread) })
	}
	return earlier(wake, retryAt)
}

// takeDue takes out the unplaced channels whose time has come, and returns when it comes for the
// next one. Channels that are not wanted any more are left out.
func (r *channelRouter) takeDue(now time.Time) (due []*channel, next time.Time) {
	next = now.Add(idleWake)
	var later []*channel
	for _, c := range r.unplaced {
		switch {
		case !r.sub.wants(c):
		case now.Before(c.retryAt):
			later = append(later, c)
			next = earlier(next, c.retryAt)
		default:
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
				conn.unsubscribe(c) // which deletes from the map
				c.retryAt, c.backoff = now, 0
				r.unplaced = append(r.unplaced, c)
			}
		}
	}
}

// A location says where channels are served.
type location struct {
	kind  int32      // of the servers
	table *slotTable // of a cluster; the latest one, even if it could not be reread
	err   error      // why the kind is unknown, or why the table could not be read
}

// locate finds out where channels are served, and has those that are due placed. It runs on a
// goroutine of its own. If reread, the slots of a cluster are read anew.
func (r *channelRouter) locate(due []*channel, reread bool) {
	ctx, cancel := context.WithTimeout(r.sub.ctx, locateTimeout)
	defer cancel()
	var at location
	cluster, err := r.sub.router.isCluster(ctx)
	switch {
	case err != nil:
		at = location{kind: kindUnknown, table: &slotTable{}, err: err}
	case cluster:
		table, err := r.sub.router.slots.known(ctx, reread)
		at = location{kind: kindCluster, table: table, err: err}
	default:
		at = location{kind: kindSingle, table: &slotTable{}}
	}
	r.sub.post(func() {
		r.locating = false
		for _, c := range due {
			if r.sub.wants(c) {
				r.place(c, at)
			}
		}
		r.prune(at.table)
	})
}

// place attaches a channel to the connection to its node. If there is none, a channel that was
// confirmed before is tried again, and the calls of Add for a new one fail.
func (r *channelRouter) place(c *channel, at location) {
	if r.isUnsharded(c, at.kind) {
		r.sub.unsharded.attach(c)
		return
	}
	address := at.table.master(slotOfKey(c.name))
	switch {
	case address != "":
		r.connTo(address, c.name).attach(c)
	case c.confirmedBefore:
		r.requeue(c)
	case at.err != nil:
		c.resolve(at.err)
		r.sub.drop(c)
	default:
		c.resolve(errors.New("no node serves the slot of the channel"))
		r.sub.drop(c)
	}
}

// connTo is the connection to a node, for channels that it serves. If the client has not met the
// node, the name of one of them helps it to.
func (r *channelRouter) connTo(address, name string) *pubsubConn {
	conn := r.conns[address]
	if conn == nil {
		conn = newPubsubConn(r.sub, func(ctx context.Context) (string, error) {
			if r.sub.router.slots.latest().met[address] {
				return address, nil
			}
			return address, r.sub.router.meet(ctx, address, name)
		})
		conn.sharded = true
		r.conns[address] = conn
	}
	return conn
}

// prune ends the connections without channels to nodes that left the cluster.
func (r *channelRouter) prune(table *slotTable) {
	for address, conn := range r.conns {
		if len(conn.channels) == 0 && !table.has(address) {
			conn.disconnect()
			delete(r.conns, address)
		}
	}
}

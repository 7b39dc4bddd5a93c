package wire

import (
	"context"
	"errors"
	"time"
)

const (
	// The pause before a channel without a connection is placed again, doubled each time.
	shortestPlacing, longestPlacing = 10 * time.Millisecond, 250 * time.Millisecond
	// placingTimeout bounds one look at the cluster.
	placingTimeout = time.Second
	// recheckEvery is how often channels are compared with the slot table: a node that stands still
	// closes no connection. It costs no request.
	recheckEvery = 250 * time.Millisecond
)

// A channelRouter finds the connection for a channel. On a cluster that is, for a channel with a
// hash tag, the one to the node that serves its slot. It tries until a node takes the channel:
// slots move, and nodes die. Its state belongs to the goroutine of the subscription.
type channelRouter struct {
	s          *subscription
	noSharding bool // the servers know no sharded channels
	unplaced   []*channel
	placing    bool                   // a look at the cluster is under way
	conns      map[string]*pubsubConn // by the node's address
	recheckAt  time.Time
}

func newChannelRouter(s *subscription) *channelRouter {
	return &channelRouter{s: s, conns: map[string]*pubsubConn{}}
}

// add takes a new channel on its way.
func (r *channelRouter) add(c *channel) {
	_, tagged := hashTag(c.name)
	kind := r.s.router.kind.Load()
	if kind == kindSingle || kind == kindCluster && (!tagged || r.noSharding) {
		r.s.plain.attach(c)
		return
	}
	r.unplaced = append(r.unplaced, c)
}

// failed takes a channel that its connection gave away.
func (r *channelRouter) failed(c *channel) {
	if r.s.channels[c.name] != c {
		return
	}
	if r.noSharding {
		r.s.plain.attach(c)
		return
	}
	c.pause = min(max(2*c.pause, shortestPlacing), longestPlacing)
	c.retryAt = time.Now().Add(c.pause)
	r.unplaced = append(r.unplaced, c)
}

// advance places the channels whose time has come, and returns when to look again.
func (r *channelRouter) advance(now time.Time) (wake time.Time) {
	wake = now.Add(never)
	if len(r.conns) > 0 && len(r.s.channels) > 0 {
		if !now.Before(r.recheckAt) {
			r.recheckAt = now.Add(recheckEvery)
			r.relocateMoved(now)
		}
		wake = r.recheckAt
	}
	if r.placing {
		return wake // its end is reported
	}
	var due, later []*channel
	again := false // one of them failed before: read the slots anew
	for _, c := range r.unplaced {
		switch {
		case r.s.channels[c.name] != c: // given up meanwhile
		case now.Before(c.retryAt):
			later = append(later, c)
			if c.retryAt.Before(wake) {
				wake = c.retryAt
			}
		default:
			due = append(due, c)
			again = again || c.pause > 0
		}
	}
	r.unplaced = later
	if len(due) > 0 {
		r.placing = true
		r.s.works.Go(func() { r.look(due, again) })
	}
	return wake
}

// relocateMoved takes channels off the connections to nodes that do not serve them any more, as
// far as is known.
func (r *channelRouter) relocateMoved(now time.Time) {
	table := r.s.router.slots.latest()
	for address, conn := range r.conns {
		for _, c := range conn.channels {
			if master := table.master(slotOfKey(c.name)); master != "" && master != address {
				conn.giveUp(c)
				c.retryAt, c.pause = now, 0
				r.unplaced = append(r.unplaced, c)
			}
		}
	}
}

// look asks the cluster where channels are served, and reports. It runs on a goroutine of its own.
func (r *channelRouter) look(due []*channel, again bool) {
	ctx, cancel := context.WithTimeout(r.s.ctx, placingTimeout)
	defer cancel()
	cluster, err := r.s.router.isCluster(ctx)
	table := r.s.router.slots.latest()
	if cluster {
		table, err = r.s.router.slots.known(ctx, again) // on failure, what was known before
	}
	r.s.post(func() {
		r.placing = false
		for _, c := range due {
			if r.s.channels[c.name] == c {
				r.place(c, cluster, table, err)
			}
		}
		r.prune(table)
	})
}

// place gives a channel to the connection to its node. Err is why there may be none.
func (r *channelRouter) place(c *channel, cluster bool, table *slotTable, err error) {
	_, tagged := hashTag(c.name)
	known := cluster || err == nil
	if known && (!cluster || !tagged || r.noSharding) {
		r.s.plain.attach(c)
		return
	}
	address := table.master(slotOfKey(c.name))
	switch {
	case address != "":
		r.conn(address, c.name).attach(c)
	case c.confirmedBefore:
		r.failed(c)
	default:
		if err == nil {
			err = errors.New("no node serves the slot of the channel")
		}
		c.resolve(err)
		r.s.drop(c)
	}
}

// conn is the connection to a node, for channels that it serves. The name of one of them makes the
// client learn of the node, if it has not met it.
func (r *channelRouter) conn(address, name string) *pubsubConn {
	conn := r.conns[address]
	if conn == nil {
		conn = newPubsubConn(r.s, func(ctx context.Context) (string, error) {
			if r.s.router.slots.latest().met[address] {
				return address, nil
			}
			return address, r.s.router.meet(ctx, address, name)
		})
		conn.sharded = true
		r.conns[address] = conn
	}
	return conn
}

// prune ends the connections to nodes that left the cluster.
func (r *channelRouter) prune(table *slotTable) {
	for address, conn := range r.conns {
		if len(conn.channels) == 0 && !table.has(address) {
			if conn.link != nil {
				conn.lost(conn.link, errIdle)
			}
			delete(r.conns, address)
		}
	}
}

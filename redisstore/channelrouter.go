package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// The pause before a channel without a line is tried again, doubled each time.
	shortestPlacing, longestPlacing = 10 * time.Millisecond, 250 * time.Millisecond
	// placingTime bounds one look at the cluster.
	placingTime = time.Second
	// staying is how often it is looked whether the client knows another node for a channel by now:
	// a node that stands still closes no connection. It costs no request.
	staying = 250 * time.Millisecond
)

// A channelRouter finds the node that serves a channel's slot, again and again until one takes the
// channel: slots move, and nodes die. It has one line to each node.
type channelRouter struct {
	s       *subscription
	cluster *cluster
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wake    chan struct{} // holds one

	// Guarded by the subscription's mu.
	started  bool
	old      bool // the servers know no sharded channels
	unplaced []*channel
	lines    map[*redis.Client]*line
}

// A route is how far a channel is on its way to a line.
type route struct {
	at    time.Time     // not to be tried before
	pause time.Duration // before the last attempt; zero: none failed
}

func newChannelRouter(s *subscription, c *cluster) *channelRouter {
	h := &channelRouter{s: s, cluster: c, wake: make(chan struct{}, 1), lines: map[*redis.Client]*line{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// tagged tells whether a channel has a hash tag, and so a slot that is meant.
func tagged(name string) bool {
	_, rest, open := strings.Cut(name, "{")
	return open && strings.Index(rest, "}") > 0
}

// send takes a new channel on its way, if it is one for a line of its own. mu is held, as by the
// methods below.
func (h *channelRouter) send(c *channel) bool {
	if h.old || !tagged(c.name) {
		return false
	}
	h.unplaced = append(h.unplaced, c)
	if !h.started {
		h.started = true
		h.s.works.Go(h.run)
	}
	h.nudge()
	return true
}

// failed takes a channel that its line gave away.
func (h *channelRouter) failed(c *channel) {
	if h.s.channels[c.name] != c {
		return
	}
	if h.old {
		h.s.plain.adopt(c)
		return
	}
	c.route.pause = min(max(2*c.route.pause, shortestPlacing), longestPlacing)
	c.route.at = time.Now().Add(c.route.pause)
	h.unplaced = append(h.unplaced, c)
	h.nudge()
}

func (h *channelRouter) close() {
	h.cancel()
	for _, l := range h.lines {
		l.cancel()
	}
}

func (h *channelRouter) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run brings channels home until Close.
func (h *channelRouter) run() {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-h.wake:
		case <-next.C:
		case <-h.ctx.Done():
			return
		}
		h.relocateMoved()
		due, again, after := h.due()
		if len(due) > 0 {
			h.bring(due, again)
			h.nudge()
		}
		next.Reset(after)
	}
}

// due takes out who is to be tried now, and tells whether any failed before, and when to look
// again.
func (h *channelRouter) due() (due []*channel, again bool, after time.Duration) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	after = time.Hour
	if len(h.s.channels) > 0 {
		after = staying
	}
	var later []*channel
	for _, c := range h.unplaced {
		left := time.Until(c.route.at)
		switch {
		case h.s.channels[c.name] != c: // given up meanwhile
		case left > 0:
			after = min(after, left)
			later = append(later, c)
		default:
			again = again || c.route.pause > 0
			due = append(due, c)
		}
	}
	h.unplaced = later
	return due, again, after
}

// relocateMoved takes channels off the lines to nodes that do not serve them any more, as far as
// the client knows.
func (h *channelRouter) relocateMoved() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	for node, l := range h.lines {
		for _, c := range l.channels {
			if now, err := h.cluster.rdb.MasterForKey(h.ctx, c.name); err == nil && now != node {
				l.drop(c)
				c.on, c.route = false, route{}
				h.unplaced = append(h.unplaced, c)
			}
		}
	}
}

// bring gives each channel to the line of its node. Where one failed before, the slots are read
// anew.
func (h *channelRouter) bring(due []*channel, again bool) {
	ctx, cancel := context.WithTimeout(h.ctx, placingTime)
	defer cancel()
	err := h.cluster.load(ctx)
	if again && err == nil {
		_ = h.cluster.refresh(ctx) // or what was known before, and another attempt
	}
	nodes := make([]*redis.Client, len(due))
	for i, c := range due {
		if err == nil {
			nodes[i], err = h.cluster.rdb.MasterForKey(ctx, c.name)
		}
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	for i, c := range due {
		switch {
		case h.s.channels[c.name] != c || h.s.over:
		case nodes[i] == nil && !c.was:
			c.settle(err)
			h.s.drop(c)
		case nodes[i] == nil:
			h.failed(c)
		default:
			h.line(nodes[i]).adopt(c)
		}
	}
	if again {
		h.prune()
	}
}

// line is the one to a node.
func (h *channelRouter) line(node *redis.Client) *line {
	l := h.lines[node]
	if l == nil {
		l = newLine(h.s, listener(node))
		l.sharded = true
		h.lines[node] = l
	}
	return l
}

// prune ends the lines to nodes that left the cluster.
func (h *channelRouter) prune() {
	for node, l := range h.lines {
		if len(l.channels) == 0 && !h.cluster.has(node) {
			l.cancel()
			delete(h.lines, node)
		}
	}
}

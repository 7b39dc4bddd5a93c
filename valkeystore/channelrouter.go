// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

const (
	// The pause before a channel without a line is tried again, doubled each time.
	shortestPlacing, longestPlacing = 10 * time.Millisecond, 250 * time.Millisecond
	// placingTime bounds one look at the cluster.
	placingTime = time.Second
	// staying is how often it is looked whether another node is known for a channel by now: a node
	// that stands still closes no connection. It costs no request.
	staying = 250 * time.Millisecond
)

// A channelRouter finds the node that serves a channel's slot, again and again until one takes the
// channel: slots move, and nodes die. It has one line to each node.
type channelRouter struct {
	s       *subscription
	cluster *cluster
	wake    chan struct{} // holds one

	// Guarded by the subscription's mu.
	started  bool
	old      bool // the servers know no sharded channels
	unplaced []*channel
	lines    map[string]*line // by address
}

// A route is how far a channel is on its way to a line.
type route struct {
	slot  int
	at    time.Time     // not to be tried before
	pause time.Duration // before the last attempt; zero: none failed
}

// tagged tells whether a channel has a hash tag, and so a slot that is meant.
func tagged(name string) bool {
	_, rest, open := strings.Cut(name, "{")
	return open && strings.Index(rest, "}") > 0
}

// send takes a new channel on its way, if it is one for a line of its own. mu is held.
func (h *channelRouter) send(c *channel) bool {
	if h.old || !tagged(c.name) {
		return false
	}
	c.route.slot = h.cluster.slot(c.name)
	h.unplaced = append(h.unplaced, c)
	h.s.work(&h.started, h.run)
	h.nudge()
	return true
}

// failed takes a channel that its line gave away. mu is held.
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
		case <-h.s.ctx.Done():
			return
		}
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
	t := h.cluster.latest()
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	for addr, l := range h.lines {
		for _, c := range l.channels {
			if now := t.master(c.route.slot); now != "" && now != addr {
				l.drop(c) // its slot moved
				h.unplaced = append(h.unplaced, c)
			}
		}
	}
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

// bring gives each channel to the line of its node. Where one failed before, the slots are read
// anew.
func (h *channelRouter) bring(due []*channel, again bool) {
	ctx, cancel := context.WithTimeout(h.s.ctx, placingTime)
	defer cancel()
	t, err := h.cluster.known(ctx, again)
	if err != nil {
		t = h.cluster.latest() // what was known before, and another attempt
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	for _, c := range due {
		addr := t.master(c.route.slot)
		switch {
		case h.s.channels[c.name] != c || h.s.ctx.Err() != nil:
		case addr == "" && !c.was:
			if err == nil {
				err = errSlots
			}
			c.settle(err)
			h.s.drop(c)
		case addr == "":
			h.failed(c)
		default:
			h.line(addr).adopt(c)
		}
	}
	for addr, l := range h.lines {
		if len(l.channels) == 0 && t.clients[addr] == nil { // its node left the cluster
			l.cancel()
			delete(h.lines, addr)
		}
	}
}

// line is the one to the node at an address.
func (h *channelRouter) line(addr string) *line {
	l := h.lines[addr]
	if l == nil {
		l = newLine(h.s, func(ctx context.Context) (valkey.Client, error) { return h.cluster.at(ctx, addr, "") })
		l.sharded = true
		h.lines[addr] = l
	}
	return l
}

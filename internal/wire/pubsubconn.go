package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	// silentAfter is how long nothing may be heard before the server is asked for a sign of life,
	// and how long the server may then take for it.
	silentAfter = 5 * time.Second
	// idleAfter is how long a connection without channels stays, for the next channel to find it.
	idleAfter = 10 * time.Second
	// steadyAfter is how long a connection must have lived for the next one to be made without much
	// waiting.
	steadyAfter = 10 * time.Second
	// The pause before a new connection, doubled each time.
	shortestPause, longestPause = 10 * time.Millisecond, 2 * time.Second
)

var (
	// errIdle ends a connection that no channel needs.
	errIdle = errors.New("no channels")
	// errSilent ends a connection on which even a question is not answered.
	errSilent = errors.New("the server does not answer")
)

// A pubsubConn keeps one connection for messages while it has a channel, and makes it again when it
// is lost. Its state belongs to the goroutine of the subscription.
//
// A sharded one gives away the channels whose slot its node does not serve, and all of them when
// its connection is lost: by then another node may serve them.
type pubsubConn struct {
	s       *subscription
	node    func(context.Context) (string, error) // where to connect
	sharded bool

	channels map[string]*channel
	link     *pubsubLink   // the present connection, or one that is being made; nil: none
	retryAt  time.Time     // no new connection before
	pause    time.Duration // before the next new connection
	hurry    bool          // a call of Add came since the last connection: do not rest
	missing  int           // channels that were confirmed before, and are not on
	gap      bool          // messages may have been missed, and the sink was not told
	emptied  time.Time     // when the last channel was removed
}

func newPubsubConn(s *subscription, node func(context.Context) (string, error)) *pubsubConn {
	return &pubsubConn{s: s, node: node, channels: map[string]*channel{}, pause: shortestPause}
}

// attach takes a channel in. What it may have missed on another connection is a gap of this one.
func (c *pubsubConn) attach(ch *channel) {
	ch.conn = c
	c.channels[ch.name] = ch
	if ch.confirmedBefore {
		c.missing++
		c.gap = true
	}
	if c.link != nil {
		c.link.ask(ask{channel: ch})
	}
	c.hasten()
}

// hasten ends a rest before a new connection.
func (c *pubsubConn) hasten() { c.hurry = c.hurry || c.link == nil }

// giveUp takes a channel out, at the server too.
func (c *pubsubConn) giveUp(ch *channel) {
	c.detach(ch)
	if c.link != nil {
		c.link.ask(ask{channel: ch, off: true})
	}
}

// detach takes a channel out.
func (c *pubsubConn) detach(ch *channel) {
	if ch.confirmedBefore && !ch.on {
		c.missing--
	}
	ch.conn, ch.on = nil, false
	delete(c.channels, ch.name)
	if len(c.channels) == 0 {
		c.emptied = time.Now()
		c.gap = false // each channel takes its own along
	}
}

// sendAway takes a channel out that another node may serve by now, and has it placed anew.
func (c *pubsubConn) sendAway(ch *channel) {
	c.detach(ch)
	c.s.places.failed(ch)
}

// advance connects, asks and tells the sink of a gap, as far as it is time for it, and returns when
// to look again at the latest.
func (c *pubsubConn) advance(now time.Time) time.Time {
	if c.link == nil {
		switch {
		case len(c.channels) == 0:
			return now.Add(never)
		case now.Before(c.retryAt) && !c.hurry:
			return c.retryAt
		}
		c.connect(now)
	}
	if c.gap && c.missing == 0 {
		c.gap = false
		c.s.sink.gap()
	}
	return c.check(now)
}

// connect begins a connection, with questions for all channels.
func (c *pubsubConn) connect(now time.Time) {
	c.hurry = false
	c.link = newPubsubLink(c, now)
	for _, ch := range c.channels {
		c.link.ask(ask{channel: ch})
	}
	c.s.works.Go(c.link.run)
}

// check looks whether the connection is alive and needed, asks for a sign of life when that is due,
// and returns when to look again.
func (c *pubsubConn) check(now time.Time) time.Time {
	l := c.link
	if len(c.channels) == 0 {
		idle := c.emptied.Add(c.s.router.idleAfter)
		if now.Before(idle) {
			l.flush(now)
			return idle
		}
		c.lost(l, errIdle)
		return now.Add(never)
	}
	l.flush(now)
	if l.writing {
		return now.Add(never) // the writing has a time limit, and its end is reported
	}
	since := l.lastHeard()
	if l.unanswered > 0 && l.askedSince.After(since) {
		since = l.askedSince
	}
	silent := since.Add(c.s.router.silentAfter)
	switch {
	case now.Before(silent):
		return silent
	case l.unanswered > 0:
		c.lost(l, errSilent)
		return now // to connect again
	}
	for _, ch := range c.channels {
		l.ask(ask{channel: ch}) // a channel that is on: the server answers again
		break
	}
	l.flush(now)
	return now.Add(never) // the end of the writing is reported
}

// lost takes the end of a connection, and decides when the next is made. A waiting call of Add is
// told the reason if the server never answered on the connection; if it did, the next is likely
// to do.
func (c *pubsubConn) lost(l *pubsubLink, err error) {
	if c.link != l {
		return
	}
	c.link = nil
	l.cancel()
	now := time.Now()
	for _, ch := range c.channels {
		if ch.on {
			ch.on = false
			c.missing++
			c.gap = true
		}
		if !l.answered && len(ch.waiters) > 0 {
			ch.resolve(err)
			if !ch.confirmedBefore {
				c.s.drop(ch)
			}
		}
	}
	if now.Sub(l.born) >= steadyAfter || errors.Is(err, errIdle) {
		c.pause = shortestPause
	}
	c.retryAt = now.Add(c.pause/2 + rand.N(c.pause/2))
	c.pause = min(2*c.pause, longestPause)
	if errors.Is(err, errIdle) {
		return
	}
	if c.sharded {
		for _, ch := range c.channels {
			c.sendAway(ch)
		}
	}
	c.s.router.refreshSlots() // its node may be gone
}

// answer takes what the server said of a channel: that it is subscribed, or taken away, or, where
// refused is not empty, neither.
func (c *pubsubConn) answer(l *pubsubLink, name string, off bool, refused string) {
	if c.link != l {
		return
	}
	l.answered = true
	asked := l.asked[name]
	if off && (len(asked) == 0 || !asked[0].off) { // by itself: the slot has moved
		if ch := c.channels[name]; c.sharded && ch != nil && ch.on {
			c.sendAway(ch)
		}
		return
	}
	if len(asked) == 0 || refused == "" && asked[0].off != off {
		c.lost(l, fmt.Errorf("the server answers what was not asked about channel %q", name))
		return
	}
	question := l.answers(name)
	ch := question.channel
	switch {
	case question.off: // an answer is an answer
	case len(l.asked[name]) > 0 || c.channels[name] != ch: // a later question counts; or it was removed
	case refused == "":
		c.confirm(ch)
	default:
		c.refuse(l, ch, refused)
	}
}

// refuse takes the server's refusal of a channel.
func (c *pubsubConn) refuse(l *pubsubLink, ch *channel, refused string) {
	switch {
	case c.sharded && hasPrefix(refused, "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN"):
		c.sendAway(ch)
	case c.sharded && strings.HasPrefix(strings.TrimPrefix(refused, "ERR "), "unknown command"):
		c.s.places.noSharding = true
		c.sendAway(ch)
	case ch.on: // the answer to a sign of life
	case ch.confirmedBefore && !strings.HasPrefix(refused, "NOPERM"):
		c.lost(l, errors.New(refused)) // it was allowed, and may be again
	default:
		ch.resolve(errors.New(refused))
		c.s.drop(ch)
	}
}

func (c *pubsubConn) confirm(ch *channel) {
	if ch.confirmedBefore && !ch.on {
		c.missing--
	}
	ch.on, ch.confirmedBefore, ch.pause = true, true, 0
	ch.resolve(nil)
}

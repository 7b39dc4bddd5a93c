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
	// and how long the server may then take for it. It also bounds connecting, and each writing.
	silentAfter = 5 * time.Second

	// idleAfter is how long a connection without channels stays, for the next channel to find it.
	idleAfter = 10 * time.Second

	// steadyAfter is how long a connection must have lived for the pause after it to be the
	// shortest again.
	steadyAfter = 10 * time.Second

	// The pause before a new connection begins with the shortest, and doubles up to the longest.
	minReconnectBackoff, maxReconnectBackoff = 10 * time.Millisecond, 2 * time.Second
)

var (
	// errSilent ends a connection on which not even a question is answered.
	errSilent = errors.New("the server does not answer")

	// errMisled ends a connection that may lead to a wrong server, as those of requests did.
	errMisled = errors.New("the connection may lead to a server that was replaced")
)

// A pubsubConn keeps one connection for messages while it has channels, and makes it again when it
// is lost. Its state belongs to the goroutine of the subscription.
//
// A sharded one gives away the channels whose slot its node does not serve, and all of them when
// its connection is lost: by then another node may serve them.
type pubsubConn struct {
	sub     *subscription
	sharded bool
	// node names the node to connect to. It runs on the goroutine of a link.
	node func(context.Context) (string, error)

	channels       map[string]*channel // all attached ones, by name
	numInterrupted int                 // how many of them are interrupted
	gap            bool                // messages may have been missed, and the sink was not told
	emptiedAt      time.Time           // when the last channel was detached

	link    *pubsubLink   // the present connection, or one that is being made; nil: none
	retryAt time.Time     // no new connection before, unless hurry
	backoff time.Duration // the longest pause before the next new connection
	hurry   bool          // a channel was attached, or Add was called, while there was no link
	silent  bool          // the last link had no answer
}

func newPubsubConn(s *subscription, node func(context.Context) (string, error)) *pubsubConn {
	return &pubsubConn{sub: s, node: node, channels: map[string]*channel{}, backoff: minReconnectBackoff}
}

// attach subscribes a channel on this connection. Messages that it may have missed on another
// connection are a gap of this one.
func (c *pubsubConn) attach(ch *channel) {
	ch.conn = c
	c.channels[ch.name] = ch
	if ch.interrupted() {
		c.numInterrupted++
		c.gap = true
	}
	if c.link != nil {
		c.link.enqueue(question{channel: ch})
	}
	c.connectNow()
}

// connectNow ends the pause before a new connection, if there is none.
func (c *pubsubConn) connectNow() {
	if c.link == nil {
		c.hurry = true
	}
}

// unsubscribe detaches a channel, and has the server give it up.
func (c *pubsubConn) unsubscribe(ch *channel) {
	c.detach(ch)
	if c.link != nil {
		c.link.enqueue(question{channel: ch, off: true})
	}
}

// detach takes a channel off this connection, and sends nothing.
func (c *pubsubConn) detach(ch *channel) {
	if ch.interrupted() {
		c.numInterrupted--
	}
	ch.conn, ch.confirmed = nil, false
	delete(c.channels, ch.name)
	if len(c.channels) == 0 {
		c.emptiedAt = time.Now()
		c.gap = false // a channel that was confirmed makes a gap where it is attached next
	}
}

// giveAway detaches a channel that another node may serve by now, and has it placed anew.
func (c *pubsubConn) giveAway(ch *channel) {
	c.detach(ch)
	c.sub.placement.retryPlacement(ch)
}

// advance does what is due: it connects, tells the sink of a gap, writes, and ends a connection
// that is idle or silent. It returns when to call it again at the latest.
func (c *pubsubConn) advance(now time.Time) (wake time.Time) {
	if c.link == nil {
		if len(c.channels) == 0 {
			return now.Add(idleWake)
		}
		if now.Before(c.retryAt) && !c.hurry {
			return c.retryAt
		}
		c.connect(now)
	}
	if c.gap && c.numInterrupted == 0 {
		c.gap = false
		c.sub.sink.gap()
	}
	idle := len(c.channels) == 0
	idleUntil := c.emptiedAt.Add(idleAfter)
	if idle && !now.Before(idleUntil) {
		c.disconnect()
		return now.Add(idleWake)
	}
	c.link.flush(now)
	switch {
	case idle:
		return idleUntil
	case c.link.writing:
		return now.Add(idleWake) // the writing has a time limit, and its end is posted
	}
	return c.checkAlive(now)
}

// connect begins a connection, with questions for all channels.
func (c *pubsubConn) connect(now time.Time) {
	c.hurry = false
	c.link = newPubsubLink(c, now)
	for _, ch := range c.channels {
		c.link.enqueue(question{channel: ch})
	}
	c.sub.goroutines.Go(c.link.run)
}

// disconnect ends the connection, if there is one, as no channel needs it.
func (c *pubsubConn) disconnect() {
	if c.link != nil {
		c.link.cancel()
	}
	c.link, c.backoff = nil, minReconnectBackoff
}

// checkAlive asks for a sign of life if nothing was heard for long, and gives up a connection on
// which it does not come. It returns when to call it again.
func (c *pubsubConn) checkAlive(now time.Time) (wake time.Time) {
	l := c.link
	silentSince := l.lastHeard()
	if l.unanswered > 0 && l.unansweredSince.After(silentSince) {
		silentSince = l.unansweredSince
	}
	due := silentSince.Add(silentAfter)
	switch {
	case now.Before(due):
		return due
	case l.unanswered > 0:
		c.lost(l, errSilent)
		return now // to connect again
	}
	for _, ch := range c.channels {
		l.enqueue(question{channel: ch}) // the server confirms it once more
		break                            // one is enough
	}
	l.flush(now)
	return now.Add(idleWake) // the end of the writing is posted
}

// lost ends a connection for a reason, and decides when the next is made. If the server never
// answered on this one, the waiting calls of Add are told the reason. If it did, the next
// connection is likely to work, and they go on waiting.
func (c *pubsubConn) lost(l *pubsubLink, err error) {
	if c.link != l {
		return // its end is known
	}
	c.link = nil
	c.silent = errors.Is(err, errSilent) || isTimeout(err) && !isDialing(err)
	l.cancel()
	for _, ch := range c.channels {
		if ch.confirmed {
			ch.confirmed = false
			c.numInterrupted++
			c.gap = true
		}
		if !l.answered && len(ch.waiters) > 0 {
			ch.resolve(err)
			if !ch.confirmedBefore {
				c.sub.drop(ch) // which deletes from the map
			}
		}
	}
	now := time.Now()
	if now.Sub(l.born) >= steadyAfter {
		c.backoff = minReconnectBackoff
	}
	c.retryAt = now.Add(c.backoff/2 + rand.N(c.backoff/2))
	c.backoff = min(2*c.backoff, maxReconnectBackoff)
	if c.sharded {
		for _, ch := range c.channels {
			c.giveAway(ch)
		}
	}
	c.sub.router.refreshSlots() // the node may be gone
}

// handle takes in what the server said of a channel on a connection: the answer to the oldest
// question about the channel, or that it takes the channel away by itself.
func (c *pubsubConn) handle(l *pubsubLink, a answer) {
	if c.link != l {
		return // it was lost
	}
	l.answered = true
	oldest, asked := l.oldest(a.channel)
	if a.off && !(asked && oldest.off) {
		c.takenAway(a.channel)
		return
	}
	if !asked || a.refused == "" && oldest.off != a.off {
		c.lost(l, fmt.Errorf("the server answers what was not asked about channel %q", a.channel))
		return
	}
	l.removeOldest(a.channel)
	ch := oldest.channel
	_, askedSince := l.oldest(a.channel)
	switch {
	case oldest.off: // nobody waits for this answer
	case askedSince: // the answer to the last question counts
	case c.channels[ch.name] != ch: // it was detached
	case a.refused != "":
		c.refuse(l, ch, a.refused)
	default:
		c.noteSubscribed(ch)
	}
}

// takenAway has a channel placed anew that the server takes away by itself, as its slot moved. A
// channel that is not confirmed has a question under way, whose answer decides.
func (c *pubsubConn) takenAway(name string) {
	if ch := c.channels[name]; c.sharded && ch != nil && ch.confirmed {
		c.giveAway(ch)
	}
}

// refuse takes the server's refusal of a channel.
func (c *pubsubConn) refuse(l *pubsubLink, ch *channel, refused string) {
	switch {
	case c.sharded && hasPrefix(refused, "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN"):
		c.giveAway(ch)
	case c.sharded && strings.HasPrefix(strings.TrimPrefix(refused, "ERR "), "unknown command"):
		c.sub.placement.noSharding = true
		c.giveAway(ch)
	case ch.confirmed: // a refusal is a sign of life too, and the channel stays subscribed
	case ch.confirmedBefore && !strings.HasPrefix(refused, "NOPERM"):
		c.lost(l, errors.New(refused)) // it was allowed, and may be again
	default:
		ch.resolve(errors.New(refused))
		c.sub.drop(ch)
	}
}

// noteSubscribed notes that the server has confirmed a channel.
func (c *pubsubConn) noteSubscribed(ch *channel) {
	if ch.interrupted() {
		c.numInterrupted--
	}
	ch.confirmed, ch.confirmedBefore, ch.backoff = true, true, 0
	ch.resolve(nil)
}

package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A line keeps one connection for messages while it has a channel, and makes it again when it is
// lost.
//
// Its keeper, a goroutine that starts with the first channel, is the only one that connects and
// writes; a second one reads while there is a connection. go-redis' PubSub would reconnect by
// itself and subscribe all channels in one command, which a single channel without permission makes
// fail as a whole, and nobody could tell when all are confirmed. So each connection is a PubSub of
// its own, given up at its first error.
//
// A sharded line subscribes by SSUBSCRIBE, and gives away the channels whose slot its node does not
// serve, and all of them when its connection is lost.
type line struct {
	s       *subscription
	open    func() *redis.PubSub
	sharded bool
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wake    chan struct{} // the keeper has something to look at; holds one

	// Guarded by the subscription's mu.
	started  bool
	channels map[string]*channel // its own
	leaving  []*channel          // to be given away
	conn     *connection         // nil: none
	queue    []question          // for conn, not yet written
	missing  int                 // channels that were confirmed before, and are not yet on conn
	gap      bool                // messages may have been missed, and the sink was not told
	hurry    bool                // a channel came since the last attempt to connect
	emptied  time.Time           // when the last channel was removed
}

func newLine(s *subscription, open func() *redis.PubSub) *line {
	l := &line{s: s, open: open, wake: make(chan struct{}, 1), channels: map[string]*channel{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// adopt takes a channel in. What it may have missed on another line is a gap of this one. mu is
// held.
func (l *line) adopt(c *channel) {
	c.line = l
	l.channels[c.name] = c
	if c.was {
		l.gap = true
		if l.conn != nil {
			l.missing++
		}
	}
	l.ask(question{kind: subscribe, channels: []*channel{c}})
	if !l.started && !l.s.over {
		l.started = true
		l.s.works.Go(l.keep)
	}
	l.hasten()
}

// hasten ends a rest before a new connection. mu is held.
func (l *line) hasten() {
	l.hurry = true
	l.nudge()
}

// drop gives a channel up, at the server too. mu is held.
func (l *line) drop(c *channel) {
	l.remove(c)
	l.ask(question{kind: unsubscribe, channels: []*channel{c}})
	l.nudge()
}

// remove takes a channel out. mu is held.
func (l *line) remove(c *channel) {
	c.line = nil
	delete(l.channels, c.name)
	if c.was && !c.on && l.conn != nil {
		l.missing--
	}
	if len(l.channels) == 0 {
		l.emptied = time.Now()
	}
}

// leave takes out a channel that another node serves by now; placeAgain sends it there. mu is held.
func (l *line) leave(c *channel) {
	l.remove(c)
	c.on = false
	l.leaving = append(l.leaving, c)
}

// placeAgain sends on who has left. mu is held.
func (l *line) placeAgain() {
	for _, c := range l.leaving {
		l.s.home.failed(c)
	}
	l.leaving = nil
}

// ask queues a question for the present connection, if there is one: the next begins with its own.
// mu is held.
func (l *line) ask(q question) {
	if l.conn != nil {
		l.queue = append(l.queue, q)
	}
}

// nudge makes the keeper look.
func (l *line) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

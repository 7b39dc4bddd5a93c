package rueidisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// A line keeps one connection for messages while it has a channel, and makes it again when it is
// lost.
//
// Its keeper, a goroutine that starts with the first channel, is the only one that connects and
// writes. The connection is a dedicated one of the client: Receive would subscribe again by itself,
// and nobody could tell when all channels are confirmed.
//
// A sharded line subscribes by SSUBSCRIBE, and gives away the channels whose slot its node does not
// serve, and all of them when its connection is lost.
type line struct {
	s       *subscription
	node    func(context.Context) (rueidis.Client, error) // whose connection to take
	sharded bool
	ctx     context.Context // ends with Close, and when its node left the cluster
	cancel  context.CancelFunc
	wake    chan struct{} // the keeper has something to look at; holds one

	// Guarded by the subscription's mu.
	started  bool
	channels map[string]*channel // its own
	queue    []question          // for the present connection, not yet asked
	serving  bool                // there is a connection, or one is being made
	gap      bool                // messages may have been missed, and the sink was not told
	hurry    bool                // a channel came since the last attempt to connect
	emptied  time.Time           // when the last channel was removed
}

func newLine(s *subscription, node func(context.Context) (rueidis.Client, error)) *line {
	l := &line{s: s, node: node, wake: make(chan struct{}, 1), channels: map[string]*channel{}}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	return l
}

// adopt takes a channel in. What it may have missed on another line is a gap of this one. mu is
// held.
func (l *line) adopt(c *channel) {
	c.line = l
	l.channels[c.name] = c
	l.gap = l.gap || c.was
	l.ask(question{subscribe, c})
	l.s.work(&l.started, l.keep)
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
	l.ask(question{unsubscribe, c})
	l.nudge()
}

// leave gives a channel away that another node may serve by now. mu is held.
func (l *line) leave(c *channel) {
	l.remove(c)
	l.s.home.failed(c)
}

// remove takes a channel out. mu is held.
func (l *line) remove(c *channel) {
	c.line, c.on = nil, false
	delete(l.channels, c.name)
	if len(l.channels) == 0 {
		l.emptied = time.Now()
	}
}

// ask queues a question for the present connection, if there is one: the next begins with its own.
// mu is held.
func (l *line) ask(q question) {
	if l.serving {
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

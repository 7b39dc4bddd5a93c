package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A question is a command that the server answers on the connection for messages, in order.
type question struct {
	kind     kind
	channels []*channel
	answered int       // of channels, when there are several
	at       time.Time // when it was written
}

type kind string

const (
	subscribe   kind = "subscribe"
	unsubscribe kind = "unsubscribe"
	ping        kind = "ping"
)

// kindOf reads the kind of an answer, also of a sharded line's.
func kindOf(said string) kind {
	switch said {
	case "ssubscribe":
		return subscribe
	case "sunsubscribe":
		return unsubscribe
	}
	return kind(said)
}

// A connection carries messages from its first question until its first error.
type connection struct {
	l      *line
	ps     *redis.PubSub
	ctx    context.Context
	cancel context.CancelFunc
	born   time.Time
	heard  atomic.Int64  // when something came, in nanoseconds since born
	down   chan struct{} // closed when listen has ended; nil before it began
	err    error         // why it ended
	asked  []question    // written and not answered; guarded by subscription.mu
}

// begin makes a connection, unconnected, with questions for all channels that are wanted: one for
// those that were confirmed before, which the server is likely to allow again, and one each for the
// others.
func (l *line) begin() *connection {
	c := &connection{l: l, ps: l.open(), born: time.Now()}
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.conn, l.queue, l.missing, l.hurry = c, nil, 0, false
	var again []*channel
	for _, ch := range l.channels {
		if ch.was && !l.sharded { // those of one command must be of one slot
			again = append(again, ch)
		} else {
			l.ask(question{kind: subscribe, channels: []*channel{ch}})
		}
		if ch.was {
			l.missing++
		}
	}
	if len(again) > 0 {
		l.queue = append([]question{{kind: subscribe, channels: again}}, l.queue...)
	}
	return c
}

// end closes the connection, joins its reader, and notes what is lost. Whoever waits in Add for a
// connection that never said anything is told the reason; after one that did, the next is likely to
// do.
func (l *line) end(c *connection, err error) {
	c.cancel()
	_ = c.ps.Close() // it is of no use any more
	if c.down != nil {
		<-c.down
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.conn, l.queue = nil, nil
	for _, ch := range l.channels {
		l.gap = l.gap || ch.on
		ch.on = false
		if c.heard.Load() == 0 && ch.waiting > 0 {
			ch.settle(err)
			if !ch.was {
				l.s.drop(ch)
			}
		}
	}
	if l.sharded && !errors.Is(err, errIdle) { // by now another node may serve them
		for _, ch := range l.channels {
			l.leave(ch)
		}
		l.placeAgain()
	}
	l.gap = l.gap && len(l.channels) > 0
}

// next takes a question from the queue. It counts as asked before it is written, as the answer may
// be quick.
func (l *line) next(c *connection) (question, bool) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if len(l.queue) == 0 {
		return question{}, false
	}
	q := l.queue[0]
	l.queue = l.queue[1:]
	q.at = time.Now()
	c.asked = append(c.asked, q)
	return q, true
}

// write sends a question, connecting when it is the first.
func (c *connection) write(q question) error {
	ctx, cancel := context.WithTimeout(c.ctx, quiet)
	defer cancel()
	names := make([]string, len(q.channels))
	for i, ch := range q.channels {
		names[i] = ch.name
	}
	switch {
	case q.kind == ping:
		return c.ps.Ping(ctx)
	case q.kind == subscribe && c.l.sharded:
		return c.ps.SSubscribe(ctx, names...)
	case q.kind == subscribe:
		return c.ps.Subscribe(ctx, names...)
	case c.l.sharded:
		return c.ps.SUnsubscribe(ctx, names...)
	default:
		return c.ps.Unsubscribe(ctx, names...)
	}
}

// listen hands messages to the sink and answers to the subscription, until the connection fails. It
// reads without a timeout, which could strike in the middle of a message; the keeper closes a
// connection that is silent.
func (c *connection) listen() {
	defer close(c.down)
	for {
		msg, err := c.ps.ReceiveTimeout(c.ctx, 0)
		if _, line := refusal(err); err != nil && !line {
			c.err = err
			return
		}
		c.heard.Store(int64(time.Since(c.born)))
		switch msg := msg.(type) {
		case *redis.Message:
			c.l.s.sink.Message(msg.Channel, msg.Payload)
			continue
		case *redis.Subscription:
			err = c.l.answer(c, kindOf(msg.Kind), msg.Channel, nil)
		case *redis.Pong:
			err = c.l.answer(c, ping, "", nil)
		default:
			err = c.l.answer(c, "", "", err)
		}
		if err != nil {
			c.err = err
			return
		}
	}
}

// answer takes the server's answer to the oldest question, and tells the sink when nothing is
// missing any more. It fails when the answer is to another question, or leaves the connection
// without use.
func (l *line) answer(c *connection, k kind, name string, refused error) error {
	l.s.mu.Lock()
	err := l.take(c, k, name, refused)
	l.placeAgain()
	gap := err == nil && l.gap && l.missing == 0
	if gap {
		l.gap = false
	}
	l.s.mu.Unlock()
	if gap {
		l.s.sink.Gap()
	}
	return err
}

// take is answer's part under mu.
func (l *line) take(c *connection, k kind, name string, refused error) error {
	if k == unsubscribe && l.sharded && !c.wasAsked(k, name) {
		if ch := l.channels[name]; ch != nil && ch.on {
			l.leave(ch) // its slot moved
		}
		return nil
	}
	if len(c.asked) == 0 {
		return fmt.Errorf("redisstore: the server answers what was not asked: %s %q", k, name)
	}
	q := &c.asked[0]
	if refused != nil {
		c.asked = c.asked[1:]
		return l.refuse(*q, refused)
	}
	if !c.wasAsked(k, name) {
		return fmt.Errorf("redisstore: the server answers %s %q to a %s", k, name, q.kind)
	}
	if k == subscribe {
		l.confirm(q.channels[q.answered])
	}
	q.answered++
	if q.answered >= len(q.channels) {
		c.asked = c.asked[1:]
	}
	return nil
}

// wasAsked tells whether an answer is to the oldest question.
func (c *connection) wasAsked(k kind, name string) bool {
	if len(c.asked) == 0 {
		return false
	}
	q := &c.asked[0]
	return q.kind == k && (k == ping || q.channels[q.answered].name == name)
}

func (l *line) confirm(ch *channel) {
	if l.channels[ch.name] != ch {
		return // removed in the meantime
	}
	if ch.was {
		l.missing--
	}
	ch.on, ch.was, ch.route = true, true, route{}
	ch.settle(nil)
}

// refuse takes the server's refusal of a question. Of several channels in one command the server
// refuses all for the sake of one, so they are asked for one by one.
func (l *line) refuse(q question, refused error) error {
	if q.kind != subscribe {
		return nil // an answer is an answer
	}
	if len(q.channels) > 1 {
		for _, ch := range q.channels {
			l.ask(question{kind: subscribe, channels: []*channel{ch}})
		}
		l.nudge()
		return nil
	}
	ch := q.channels[0]
	if l.channels[ch.name] != ch {
		return nil
	}
	text := refused.Error()
	if l.sharded && hasPrefix(text, "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN") {
		l.leave(ch)
		return nil
	}
	if l.sharded && strings.HasPrefix(text, "ERR unknown command") {
		l.s.home.old = true
		l.leave(ch)
		return nil
	}
	if ch.was && !strings.HasPrefix(text, "NOPERM") {
		return refused // it was allowed, and may be again
	}
	ch.settle(refused)
	l.s.drop(ch)
	return nil
}

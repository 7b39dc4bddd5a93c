package redisstore

import (
	"context"
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

// A connection carries messages from its first question until its first error.
type connection struct {
	s      *subscription
	ps     *redis.PubSub
	ctx    context.Context
	cancel context.CancelFunc
	born   time.Time
	heard  atomic.Int64  // when something came, in nanoseconds since born
	down   chan struct{} // closed when listen has ended; nil before it began
	err    error         // why it ended
	asked  []question    // written and not answered; guarded by subscription.mu
}

// begin makes a connection, unconnected, with questions for all channels that are wanted: one for those that were
// confirmed before, which the server is likely to allow again, and one each for the others.
func (s *subscription) begin() *connection {
	c := &connection{s: s, ps: s.open(), born: time.Now()}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.queue, s.missing, s.hurry = c, nil, 0, false
	var again []*channel
	for _, ch := range s.channels {
		if ch.was {
			again = append(again, ch)
		} else {
			s.ask(question{kind: subscribe, channels: []*channel{ch}})
		}
	}
	if len(again) > 0 {
		s.missing = len(again)
		s.queue = append([]question{{kind: subscribe, channels: again}}, s.queue...)
	}
	return c
}

// end closes the connection, joins its reader, and notes what is lost. Whoever waits in Add for a connection that
// never said anything is told the reason; after one that did, the next is likely to do.
func (s *subscription) end(c *connection, err error) {
	c.cancel()
	_ = c.ps.Close() // it is of no use any more
	if c.down != nil {
		<-c.down
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.queue = nil, nil
	for _, ch := range s.channels {
		s.gap = s.gap || ch.on
		ch.on = false
		if c.heard.Load() == 0 && ch.waiting > 0 {
			ch.settle(err)
			if !ch.was {
				s.drop(ch)
			}
		}
	}
	s.gap = s.gap && len(s.channels) > 0
}

// next takes a question from the queue. It counts as asked before it is written, as the answer may be quick.
func (s *subscription) next(c *connection) (question, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return question{}, false
	}
	q := s.queue[0]
	s.queue = s.queue[1:]
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
	switch q.kind {
	case subscribe:
		return c.ps.Subscribe(ctx, names...)
	case unsubscribe:
		return c.ps.Unsubscribe(ctx, names...)
	default:
		return c.ps.Ping(ctx)
	}
}

// listen hands messages to the sink and answers to the subscription, until the connection fails. It reads without a
// timeout, which could strike in the middle of a message; the keeper closes a connection that is silent.
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
			c.s.sink.Message(msg.Channel, msg.Payload)
			continue
		case *redis.Subscription:
			err = c.s.answer(c, kind(msg.Kind), msg.Channel, nil)
		case *redis.Pong:
			err = c.s.answer(c, ping, "", nil)
		default:
			err = c.s.answer(c, "", "", err)
		}
		if err != nil {
			c.err = err
			return
		}
	}
}

// answer takes the server's answer to the oldest question, and tells the sink when nothing is missing any more.
// It fails when the answer is to another question, or leaves the connection without use.
func (s *subscription) answer(c *connection, k kind, name string, refused error) error {
	s.mu.Lock()
	err := s.take(c, k, name, refused)
	gap := err == nil && s.gap && s.missing == 0
	if gap {
		s.gap = false
	}
	s.mu.Unlock()
	if gap {
		s.sink.Gap()
	}
	return err
}

// take is answer's part under mu.
func (s *subscription) take(c *connection, k kind, name string, refused error) error {
	if len(c.asked) == 0 {
		return fmt.Errorf("redisstore: the server answers what was not asked: %s %q", k, name)
	}
	q := &c.asked[0]
	if refused != nil {
		c.asked = c.asked[1:]
		return s.refuse(*q, refused)
	}
	if q.kind != k || k != ping && q.channels[q.answered].name != name {
		return fmt.Errorf("redisstore: the server answers %s %q to a %s", k, name, q.kind)
	}
	if k == subscribe {
		s.confirm(q.channels[q.answered])
	}
	q.answered++
	if q.answered >= len(q.channels) {
		c.asked = c.asked[1:]
	}
	return nil
}

func (s *subscription) confirm(ch *channel) {
	if s.channels[ch.name] != ch {
		return // removed in the meantime
	}
	if ch.was {
		s.missing--
	}
	ch.on, ch.was = true, true
	ch.settle(nil)
}

// refuse takes the server's refusal of a question. Of several channels in one command the server refuses all for the
// sake of one, so they are asked for one by one.
func (s *subscription) refuse(q question, refused error) error {
	if q.kind != subscribe {
		return nil // an answer is an answer
	}
	if len(q.channels) > 1 {
		for _, ch := range q.channels {
			s.ask(question{kind: subscribe, channels: []*channel{ch}})
		}
		s.nudge()
		return nil
	}
	ch := q.channels[0]
	if s.channels[ch.name] != ch {
		return nil
	}
	if ch.was && !strings.HasPrefix(refused.Error(), "NOPERM") {
		return refused // it was allowed, and may be again
	}
	ch.settle(refused)
	s.drop(ch)
	return nil
}

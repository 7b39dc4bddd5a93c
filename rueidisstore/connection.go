package rueidisstore

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A question is a command that the server answers on the connection for messages, in order.
type question struct {
	kind    kind
	channel *channel
}

type kind int

const (
	subscribe kind = iota
	unsubscribe
	alive // a channel that is on, asked for again: the server answers, also where it does not allow PING
)

// A connection carries messages until its first error.
type connection struct {
	s      *subscription
	client rueidis.DedicatedClient
	born   time.Time
	heard  atomic.Int64 // when something came, in nanoseconds since born
	gone   <-chan error // gets a value, or is closed, when the connection is lost
	spoke  bool         // the server has answered something
}

// begin queues questions for all channels that are wanted.
func (s *subscription) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving, s.queue, s.hurry = true, nil, false
	for _, ch := range s.channels {
		s.ask(question{subscribe, ch})
	}
}

// end notes what is lost. Whoever waits in Add for a connection that never said anything is told the reason; after one
// that did, the next is likely to do.
func (s *subscription) end(spoke bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving, s.queue = false, nil
	for _, ch := range s.channels {
		s.gap = s.gap || ch.on
		ch.on = false
		if !spoke && ch.waiting > 0 {
			ch.settle(err)
			if !ch.was {
				s.drop(ch)
			}
		}
	}
	s.gap = s.gap && len(s.channels) > 0
}

// dial takes a connection of the client. No context interrupts that, so who waits for it may go first.
func (s *subscription) dial() (*connection, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.quiet)
	defer cancel()
	client, err := s.node(ctx)
	if err != nil {
		return nil, err
	}
	made := make(chan *connection)
	go func() {
		dedicated, _ := client.Dedicate()
		c := &connection{s: s, client: dedicated, born: time.Now()}
		c.gone = dedicated.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: c.message})
		select {
		case made <- c:
		case <-ctx.Done():
			dedicated.Close()
		}
	}()
	select {
	case c := <-made:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// message hands a message on. It runs on the goroutine that reads.
func (c *connection) message(m rueidis.PubSubMessage) {
	c.heard.Store(int64(time.Since(c.born)))
	c.s.tell(func() { c.s.sink.Message(m.Channel, m.Message) })
}

// lost is the reason why there is no connection, or nil.
func (c *connection) lost() error {
	select {
	case err := <-c.gone:
		if err == nil {
			err = rueidis.ErrClosing
		}
		return err
	default:
		return nil
	}
}

// exchange asks the server all that is queued, in one flush, and takes its answers, until the queue is empty. Then it
// tells of a gap.
func (c *connection) exchange() error {
	for {
		c.s.mu.Lock()
		questions := c.s.queue
		c.s.queue = nil
		c.s.mu.Unlock()
		if len(questions) == 0 {
			c.s.gapOver()
			return nil
		}
		commands := make([]rueidis.Completed, len(questions))
		for i, q := range questions {
			if q.kind == unsubscribe {
				commands[i] = c.client.B().Unsubscribe().Channel(q.channel.name).Build()
			} else {
				commands[i] = c.client.B().Subscribe().Channel(q.channel.name).Build()
			}
		}
		ctx, cancel := context.WithTimeout(c.s.ctx, c.s.quiet)
		results := c.client.DoMulti(ctx, commands...)
		cancel()
		if err := c.lost(); err != nil {
			return err // it may look like a refusal of what was asked, when it is one of the greeting
		}
		for i, q := range questions {
			if err := c.take(q, results[i].Error()); err != nil {
				return err
			}
		}
	}
}

// take takes the answer to a question. It fails when that leaves the connection without use.
func (c *connection) take(q question, err error) error {
	_, refused := rueidis.IsRedisErr(err)
	if err != nil && !refused {
		return err
	}
	c.spoke = true
	c.heard.Store(int64(time.Since(c.born)))
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	ch := q.channel
	if q.kind != subscribe || c.s.channels[ch.name] != ch {
		return nil // an answer is an answer; or it was removed in the meantime
	}
	if !refused {
		ch.on, ch.was = true, true
		ch.settle(nil)
		return nil
	}
	if ch.was && !strings.HasPrefix(err.Error(), "NOPERM") {
		return err // it was allowed, and may be again
	}
	ch.settle(err)
	c.s.drop(ch)
	return nil
}

// gapOver tells the sink of a gap, when all channels are subscribed again.
func (s *subscription) gapOver() {
	s.mu.Lock()
	gap := s.gap
	s.gap = false
	s.mu.Unlock()
	if gap {
		s.tell(s.sink.Gap)
	}
}

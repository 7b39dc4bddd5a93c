// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
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
	l      *line
	client valkey.DedicatedClient
	born   time.Time
	heard  atomic.Int64 // when something came, in nanoseconds since born
	gone   <-chan error // gets a value, or is closed, when the connection is lost
	spoke  bool         // the server has answered something
}

// begin queues questions for all channels that are wanted.
func (l *line) begin() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.serving, l.queue, l.hurry = true, nil, false
	for _, ch := range l.channels {
		l.ask(question{subscribe, ch})
	}
}

// end notes what is lost. Whoever waits in Add for a connection that never said anything is told
// the reason; after one that did, the next is likely to do.
func (l *line) end(spoke bool, err error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.serving, l.queue = false, nil
	for _, ch := range l.channels {
		l.gap = l.gap || ch.on
		ch.on = false
		if !spoke && ch.waiting > 0 {
			ch.settle(err)
			if !ch.was {
				l.s.drop(ch)
				continue
			}
		}
		if l.sharded && !errors.Is(err, errIdle) {
			l.leave(ch)
		}
	}
	l.gap = l.gap && len(l.channels) > 0
}

// dial takes a connection of the client. No context interrupts that, so who waits for it may go
// first.
func (l *line) dial() (*connection, error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.s.quiet)
	defer cancel()
	client, err := l.node(ctx)
	if err != nil {
		return nil, err
	}
	made := make(chan *connection)
	go func() {
		dedicated, _ := client.Dedicate()
		c := &connection{l: l, client: dedicated, born: time.Now()}
		c.gone = dedicated.SetPubSubHooks(valkey.PubSubHooks{OnMessage: c.message, OnSubscription: c.moved})
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

// message hands a message on. It runs on the goroutine that reads, as moved does.
func (c *connection) message(m valkey.PubSubMessage) {
	c.heard.Store(int64(time.Since(c.born)))
	c.l.s.tell(func() { c.l.s.sink.Message(m.Channel, m.Message) })
}

// moved hears that a channel's slot is served elsewhere: the server takes the channel away.
func (c *connection) moved(m valkey.PubSubSubscription) {
	if m.Kind != "sunsubscribe" {
		return
	}
	c.l.s.mu.Lock()
	defer c.l.s.mu.Unlock()
	if ch := c.l.channels[m.Channel]; ch != nil && ch.on { // one that we gave up is not
		c.l.leave(ch)
	}
}

// lost is the reason why there is no connection, or nil.
func (c *connection) lost() error {
	select {
	case err := <-c.gone:
		if err == nil {
			err = valkey.ErrClosing
		}
		return err
	default:
		return nil
	}
}

// exchange asks the server all that is queued, in one flush, and takes its answers, until the queue
// is empty. Then it tells of a gap.
func (c *connection) exchange() error {
	for {
		c.l.s.mu.Lock()
		questions := c.l.queue
		c.l.queue = nil
		gap := c.l.gap && len(questions) == 0
		if gap {
			c.l.gap = false
		}
		c.l.s.mu.Unlock()
		if gap {
			c.l.s.tell(c.l.s.sink.Gap)
		}
		if len(questions) == 0 {
			return nil
		}
		commands := make([]valkey.Completed, len(questions))
		for i, q := range questions {
			commands[i] = c.command(q)
		}
		ctx, cancel := context.WithTimeout(c.l.ctx, c.l.s.quiet)
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

func (c *connection) command(q question) valkey.Completed {
	b, name := c.client.B(), q.channel.name
	switch {
	case c.l.sharded && q.kind == unsubscribe:
		return b.Sunsubscribe().Channel(name).Build()
	case c.l.sharded:
		return b.Ssubscribe().Channel(name).Build()
	case q.kind == unsubscribe:
		return b.Unsubscribe().Channel(name).Build()
	}
	return b.Subscribe().Channel(name).Build()
}

// take takes the answer to a question. It fails when that leaves the connection without use.
func (c *connection) take(q question, err error) error {
	_, refused := valkey.IsValkeyErr(err)
	if err != nil && !refused {
		return err
	}
	c.spoke = true
	c.heard.Store(int64(time.Since(c.born)))
	c.l.s.mu.Lock()
	defer c.l.s.mu.Unlock()
	ch := q.channel
	if q.kind == unsubscribe || c.l.channels[ch.name] != ch {
		return nil // an answer is an answer; or it was removed in the meantime
	}
	switch {
	case !refused && q.kind == alive:
	case !refused:
		ch.on, ch.was, ch.route = true, true, route{slot: ch.route.slot}
		ch.settle(nil)
	case c.l.sharded && hasPrefix(err.Error(), "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN"):
		c.l.leave(ch)
	case c.l.sharded && strings.HasPrefix(err.Error(), "unknown command"): // valkey-go takes the ERR away
		c.l.s.home.old = true
		c.l.leave(ch)
	case q.kind == alive:
	case ch.was && !strings.HasPrefix(err.Error(), "NOPERM"):
		return err // it was allowed, and may be again
	default:
		ch.settle(err)
		c.l.s.drop(ch)
	}
	return nil
}

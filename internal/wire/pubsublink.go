package wire

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// An ask is a question to the server: for a channel, or, if off, for the end of it.
type ask struct {
	channel *channel
	off     bool
}

// A pubsubLink is one connection for messages, from its dialing to its end. A goroutine of its own
// connects and writes. What the server says comes as events.
type pubsubLink struct {
	conn    *pubsubConn
	ctx     context.Context
	cancel  context.CancelFunc
	born    time.Time
	heard   atomic.Int64 // when something came, in nanoseconds since born
	toWrite chan []ask   // holds one
	closed  chan error   // why the connection ended; holds one

	// Owned by the goroutine of the subscription.
	queue      []ask            // not yet given to run
	writing    bool             // run has asks that it has not written
	answered   bool             // the server has answered something
	asked      map[string][]ask // given to run and not answered, by the channel's name, in order
	unanswered int              // how many those are
	askedSince time.Time        // since when there are some
}

func newPubsubLink(c *pubsubConn, now time.Time) *pubsubLink {
	l := &pubsubLink{conn: c, born: now, toWrite: make(chan []ask, 1), closed: make(chan error, 1), asked: map[string][]ask{}}
	l.ctx, l.cancel = context.WithCancel(c.s.ctx)
	return l
}

// ask queues a question.
func (l *pubsubLink) ask(a ask) { l.queue = append(l.queue, a) }

// flush gives the queue to run, unless it is busy. A question counts as asked before it is
// written, as the answer may be quick.
func (l *pubsubLink) flush(now time.Time) {
	if l.writing || len(l.queue) == 0 {
		return
	}
	if l.unanswered == 0 {
		l.askedSince = now
	}
	for _, a := range l.queue {
		l.asked[a.channel.name] = append(l.asked[a.channel.name], a)
	}
	l.unanswered += len(l.queue)
	l.writing = true
	l.toWrite <- l.queue // it is empty, as nothing is being written
	l.queue = nil
}

// lastHeard is when something came, or when the connection began.
func (l *pubsubLink) lastHeard() time.Time { return l.born.Add(time.Duration(l.heard.Load())) }

// run connects and writes, until the connection ends.
func (l *pubsubLink) run() {
	err := l.serve()
	l.cancel()
	l.conn.s.post(func() { l.conn.lost(l, err) })
}

func (l *pubsubLink) serve() error {
	listener, err := l.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	for {
		select {
		case asks := <-l.toWrite:
			if err := l.write(listener, asks); err != nil {
				return err
			}
			written := time.Now() // connecting does not count as silence
			l.conn.s.post(func() {
				l.writing = false
				if l.askedSince.Before(written) {
					l.askedSince = written
				}
			})
		case err := <-l.closed:
			return err
		case <-l.ctx.Done():
			return context.Canceled
		}
	}
}

// listen opens the connection.
func (l *pubsubLink) listen() (store.Listener, error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.conn.s.router.silentAfter)
	defer cancel()
	node, err := l.conn.node(ctx)
	if err != nil {
		return nil, err
	}
	return l.conn.s.router.store.Listen(ctx, node, l.conn.sharded, l)
}

// write asks the server, in order, neighbours of one kind in one call.
func (l *pubsubLink) write(listener store.Listener, asks []ask) error {
	ctx, cancel := context.WithTimeout(l.ctx, l.conn.s.router.silentAfter)
	defer cancel()
	for len(asks) > 0 {
		off := asks[0].off
		var names []string
		for len(asks) > 0 && asks[0].off == off {
			names = append(names, asks[0].channel.name)
			asks = asks[1:]
		}
		call := listener.Subscribe
		if off {
			call = listener.Unsubscribe
		}
		if err := call(ctx, names...); err != nil {
			return err
		}
	}
	return nil
}

func (l *pubsubLink) hear() { l.heard.Store(int64(time.Since(l.born))) }

func (l *pubsubLink) report(name string, off bool, refused string) {
	l.hear()
	l.conn.s.post(func() { l.conn.answer(l, name, off, refused) })
}

// Message implements store.Events.
func (l *pubsubLink) Message(channel, payload string) {
	l.hear()
	l.conn.s.sink.message(channel, payload)
}

// Subscribed implements store.Events.
func (l *pubsubLink) Subscribed(channel string) { l.report(channel, false, "") }

// Unsubscribed implements store.Events.
func (l *pubsubLink) Unsubscribed(channel string) { l.report(channel, true, "") }

// Refused implements store.Events.
func (l *pubsubLink) Refused(channel, line string) { l.report(channel, false, line) }

// Closed implements store.Events.
func (l *pubsubLink) Closed(err error) {
	select {
	case l.closed <- err:
	default:
	}
}

// answers takes the oldest question about a channel, which is answered now.
func (l *pubsubLink) answers(name string) ask {
	asked := l.asked[name]
	if len(asked) == 1 {
		delete(l.asked, name)
	} else {
		l.asked[name] = asked[1:]
	}
	l.unanswered--
	return asked[0]
}

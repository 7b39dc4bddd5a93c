package wire

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// A question asks the server to subscribe a channel, or, if off, to give it up.
type question struct {
	channel *channel
	off     bool
}

// An answer is what the server said of a channel: that it is subscribed, or, if off, that it is
// not any more; or the line of a refusal.
type answer struct {
	channel string
	off     bool
	refused string
}

// A pubsubLink is one connection for messages, from its dialing to its end. A goroutine of its own,
// that of run, connects and writes. The server's messages come as store.Events, on goroutines of
// the adapter. Both post to the goroutine of the subscription.
type pubsubLink struct {
	conn    *pubsubConn
	ctx     context.Context // ends with the link
	cancel  context.CancelFunc
	born    time.Time
	heard   atomic.Int64    // when something came, in nanoseconds since born
	toWrite chan []question // has room for one; filled by flush and emptied by run
	closed  chan error      // why the connection has ended; has room for one
	renew   bool            // the one before it had no answer

	// Owned by the goroutine of the subscription.
	queue           []question            // not yet given to run
	writing         bool                  // run has questions that it has not written
	answered        bool                  // the server has answered something
	pending         map[string][]question // given to run and not answered, by channel, oldest first
	unanswered      int                   // how many are pending
	unansweredSince time.Time             // since when some are
}

func newPubsubLink(c *pubsubConn, now time.Time) *pubsubLink {
	l := &pubsubLink{
		conn:    c,
		born:    now,
		toWrite: make(chan []question, 1),
		closed:  make(chan error, 1),
		pending: map[string][]question{},
		renew:   c.silent,
	}
	l.ctx, l.cancel = context.WithCancel(c.sub.ctx)
	return l
}

// enqueue has a question written by the next flush.
func (l *pubsubLink) enqueue(q question) { l.queue = append(l.queue, q) }

// flush gives the queue to run, unless run is busy. A question is pending before it is written, as
// the answer may be quick.
func (l *pubsubLink) flush(now time.Time) {
	if l.writing || len(l.queue) == 0 {
		return
	}
	if l.unanswered == 0 {
		l.unansweredSince = now
	}
	for _, q := range l.queue {
		l.pending[q.channel.name] = append(l.pending[q.channel.name], q)
	}
	l.unanswered += len(l.queue)
	l.writing = true
	l.toWrite <- l.queue // does not block: it is empty unless writing
	l.queue = nil
}

// wrote notes that run has written what it was given. The server's silence begins now: the time
// that connecting took is not its silence.
func (l *pubsubLink) wrote(now time.Time) {
	l.writing = false
	if l.unansweredSince.Before(now) {
		l.unansweredSince = now
	}
}

// oldest returns the oldest question about a channel that is not answered; false if there is none.
func (l *pubsubLink) oldest(channel string) (question, bool) {
	if pending := l.pending[channel]; len(pending) > 0 {
		return pending[0], true
	}
	return question{}, false
}

// removeOldest notes that the oldest question about a channel is answered.
func (l *pubsubLink) removeOldest(channel string) {
	if pending := l.pending[channel]; len(pending) > 1 {
		l.pending[channel] = pending[1:]
	} else {
		delete(l.pending, channel)
	}
	l.unanswered--
}

// run connects and writes, until the connection ends.
func (l *pubsubLink) run() {
	err := l.serve()
	l.cancel()
	l.conn.sub.post(func() { l.conn.lost(l, err) })
}

// serve does the work of run, and returns why the connection has ended.
func (l *pubsubLink) serve() error {
	listener, err := l.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	for {
		select {
		case questions := <-l.toWrite:
			if err := l.write(listener, questions); err != nil {
				return err
			}
			now := time.Now()
			l.conn.sub.post(func() { l.wrote(now) })
		case err := <-l.closed:
			return err
		case <-l.ctx.Done():
			return context.Canceled // the subscription has ended the link, and does not ask why
		}
	}
}

// listen opens the connection.
func (l *pubsubLink) listen() (store.Listener, error) {
	ctx, cancel := context.WithTimeout(l.ctx, silentAfter)
	defer cancel()
	node, err := l.conn.node(ctx)
	if err != nil {
		return nil, err
	}
	if l.renew {
		l.conn.sub.router.store.renew(node, l.born, silent)
	}
	return l.conn.sub.router.store.Listen(ctx, node, l.conn.sharded, l)
}

// write asks the server the questions in their order, in one call for neighbours of one kind.
func (l *pubsubLink) write(listener store.Listener, questions []question) error {
	ctx, cancel := context.WithTimeout(l.ctx, silentAfter)
	defer cancel()
	for len(questions) > 0 {
		off := questions[0].off
		var names []string
		for len(questions) > 0 && questions[0].off == off {
			names = append(names, questions[0].channel.name)
			questions = questions[1:]
		}
		ask := listener.Subscribe
		if off {
			ask = listener.Unsubscribe
		}
		if err := ask(ctx, names...); err != nil {
			return err
		}
	}
	return nil
}

// noteHeard notes that the server has just sent something.
func (l *pubsubLink) noteHeard() { l.heard.Store(int64(time.Since(l.born))) }

// lastHeard returns when the server last sent something; before that, when the link was made.
func (l *pubsubLink) lastHeard() time.Time { return l.born.Add(time.Duration(l.heard.Load())) }

// report hands an answer to the goroutine of the subscription.
func (l *pubsubLink) report(a answer) {
	l.noteHeard()
	l.conn.sub.post(func() { l.conn.handle(l, a) })
}

// Message implements store.Events. Messages do not go through the goroutine of the subscription.
func (l *pubsubLink) Message(channel, payload string) {
	l.noteHeard()
	l.conn.sub.sink.message(channel, payload)
}

// Subscribed implements store.Events.
func (l *pubsubLink) Subscribed(channel string) { l.report(answer{channel: channel}) }

// Unsubscribed implements store.Events.
func (l *pubsubLink) Unsubscribed(channel string) { l.report(answer{channel: channel, off: true}) }

// Refused implements store.Events.
func (l *pubsubLink) Refused(channel, line string) {
	l.report(answer{channel: channel, refused: line})
}

// Closed implements store.Events.
func (l *pubsubLink) Closed(err error) {
	select {
	case l.closed <- err:
	default: // it has ended for another reason
	}
}

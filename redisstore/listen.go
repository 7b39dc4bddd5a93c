package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// A listener is a PubSub that is given up at its first error: it would connect again by itself,
// and ask for all channels by one command, which fails as a whole if one channel is refused.
type listener struct {
	ps      *redis.PubSub
	on, off func(context.Context, ...string) error
	events  store.Events
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	reads   bool // the goroutine of read was started; only Subscribe and Unsubscribe look
	reading sync.WaitGroup

	mu    sync.Mutex
	asked []question // written and not answered, in order
}

// A question is a command on a connection for messages. The server's refusal does not name its
// channel.
type question struct {
	channel string
	off     bool
}

// listen makes a listener that is not connected. It speaks RESP2, in which go-redis reads nothing
// but the messages, and takes no longer than limit for an answer, as no context interrupts that.
func listen(rdb *redis.Client, sharded bool, events store.Events) *listener {
	limit := 2 * time.Second // of each answer while the connection is made
	if user := rdb.Options().ReadTimeout; user > 0 {
		limit = min(limit, user)
	}
	quiet := rdb.WithTimeout(limit)
	quiet.Options().ContextTimeoutEnabled = true
	quiet.Options().Protocol = 2
	quiet.Options().DialerRetries = 1 // the next connection is the caller's concern
	ps := quiet.Subscribe(context.Background())
	l := &listener{ps: ps, on: ps.Subscribe, off: ps.Unsubscribe, events: events}
	if sharded {
		l.on, l.off = ps.SSubscribe, ps.SUnsubscribe
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Subscribe implements store.Listener.
func (l *listener) Subscribe(ctx context.Context, channels ...string) error {
	return l.ask(ctx, l.on, false, channels)
}

// Unsubscribe implements store.Listener.
func (l *listener) Unsubscribe(ctx context.Context, channels ...string) error {
	return l.ask(ctx, l.off, true, channels)
}

// ask writes a command for each channel. A question counts as asked before it is written, as the
// answer may be quick. The first one connects.
func (l *listener) ask(ctx context.Context, write func(context.Context, ...string) error, off bool, channels []string) error {
	for _, channel := range channels {
		if l.ctx.Err() != nil { // go-redis would connect again
			return redis.ErrClosed
		}
		l.mu.Lock()
		l.asked = append(l.asked, question{channel, off})
		l.mu.Unlock()
		if err := write(ctx, channel); err != nil {
			return err
		}
		if !l.reads {
			l.reads = true
			l.reading.Go(l.read)
		}
	}
	return nil
}

// read reports what comes, until the connection fails. It reads without a timeout, which could
// strike in the middle of a message.
func (l *listener) read() {
	for {
		msg, err := l.ps.ReceiveTimeout(l.ctx, 0)
		refused, isLine := refusal(err)
		switch msg := msg.(type) {
		case *redis.Message:
			l.events.Message(msg.Channel, msg.Payload)
			continue
		case *redis.Subscription:
			err = l.answer(msg)
		default:
			if isLine {
				err = l.refuse(refused)
			}
		}
		if err != nil {
			if l.ctx.Err() == nil {
				l.cancel()
				l.events.Closed(err)
			}
			return
		}
	}
}

// answer takes a confirmation: the answer to the oldest question, or a channel that the server
// takes away by itself.
func (l *listener) answer(msg *redis.Subscription) error {
	off := msg.Kind == "unsubscribe" || msg.Kind == "sunsubscribe"
	l.mu.Lock()
	answers := len(l.asked) > 0 && l.asked[0] == question{msg.Channel, off}
	if answers {
		l.asked = l.asked[1:]
	}
	l.mu.Unlock()
	switch {
	case off:
		l.events.Unsubscribed(msg.Channel)
	case !answers:
		return fmt.Errorf("redisstore: the server answers what was not asked: %s %q", msg.Kind, msg.Channel)
	default:
		l.events.Subscribed(msg.Channel)
	}
	return nil
}

// refuse takes an error line, the answer to the oldest question.
func (l *listener) refuse(line string) error {
	l.mu.Lock()
	if len(l.asked) == 0 {
		l.mu.Unlock()
		return fmt.Errorf("redisstore: the server refuses what was not asked: %s", line)
	}
	refused := l.asked[0]
	l.asked = l.asked[1:]
	l.mu.Unlock()
	l.events.Refused(refused.channel, line)
	return nil
}

// Close implements store.Listener.
func (l *listener) Close() {
	l.cancel()
	_ = l.ps.Close() // it is of no use any more
	l.reading.Wait()
}

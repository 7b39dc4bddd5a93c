package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// handshakeTimeout bounds each answer of the server while a connection is made, if the client's own
// ReadTimeout is not shorter: go-redis does not watch for the end of a context meanwhile.
const handshakeTimeout = 2 * time.Second

// A listener is a PubSub that is given up at its first error. When a connection is lost, go-redis
// makes another one by itself and asks for all channels by one command, which fails as a whole if
// one is refused. That connection is closed unread.
//
// The caller's goroutine writes commands, and a goroutine of the listener reads. As a refusal does
// not name its channel, the answers are matched with the commands by their order. A write that
// fails leaves its command pending: the caller closes a listener after an error.
type listener struct {
	pubsub      *redis.PubSub
	subscribe   func(context.Context, ...string) error // SUBSCRIBE or SSUBSCRIBE
	unsubscribe func(context.Context, ...string) error
	events      store.Events
	ctx         context.Context // ends with the first error, or with Close
	cancel      context.CancelFunc
	start       sync.Once      // of the goroutine of read; used up by Close
	reader      sync.WaitGroup // that goroutine

	mu      sync.Mutex       // guards pending
	pending []pendingCommand // about to be written, or not answered; oldest first
}

// A pendingCommand subscribes a channel, or, if off, gives it up.
type pendingCommand struct {
	channel string
	off     bool
}

// newPubSub makes a PubSub that is not connected. It speaks RESP2, in which go-redis reads nothing
// but the messages.
func newPubSub(rdb *redis.Client) *redis.PubSub {
	timeout := handshakeTimeout
	if own := rdb.Options().ReadTimeout; own > 0 {
		timeout = min(timeout, own)
	}
	client := bounded(rdb, timeout)
	client.Options().Protocol = 2
	client.Options().DialerRetries = 1 // the next connection is the caller's concern
	return client.Subscribe(context.Background())
}

// listen makes a listener that is not connected.
func listen(rdb *redis.Client, sharded bool, events store.Events) *listener {
	pubsub := newPubSub(rdb)
	l := &listener{pubsub: pubsub, subscribe: pubsub.Subscribe, unsubscribe: pubsub.Unsubscribe, events: events}
	if sharded {
		l.subscribe, l.unsubscribe = pubsub.SSubscribe, pubsub.SUnsubscribe
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Subscribe implements store.Listener.
func (l *listener) Subscribe(ctx context.Context, channels ...string) error {
	return l.send(ctx, l.subscribe, false, channels)
}

// Unsubscribe implements store.Listener.
func (l *listener) Unsubscribe(ctx context.Context, channels ...string) error {
	return l.send(ctx, l.unsubscribe, true, channels)
}

// send writes a command for each channel. The first one connects. A command is pending before it
// is written, as the answer may be quick.
func (l *listener) send(ctx context.Context, write func(context.Context, ...string) error, off bool,
	channels []string) error {
	for _, channel := range channels {
		if l.ctx.Err() != nil { // go-redis would write it on another connection
			return redis.ErrClosed
		}
		l.mu.Lock()
		l.pending = append(l.pending, pendingCommand{channel, off})
		l.mu.Unlock()
		if err := write(ctx, channel); err != nil {
			return err
		}
		l.start.Do(func() { l.reader.Go(l.read) }) // now there is a connection
	}
	return nil
}

// read reports what comes, until the connection fails. It reads without a timeout, which could
// strike in the middle of a message.
func (l *listener) read() {
	for {
		msg, err := l.pubsub.ReceiveTimeout(l.ctx, 0)
		if line, ok := refusal(err); ok {
			err = l.takeRefusal(line)
		}
		switch msg := msg.(type) { // nil with an error
		case *redis.Message:
			l.events.Message(msg.Channel, msg.Payload)
		case *redis.Subscription:
			err = l.takeConfirmation(msg)
		}
		if err != nil {
			if l.ctx.Err() == nil { // the end is not the caller's doing
				l.cancel()
				l.events.Closed(err)
			}
			return
		}
	}
}

// takeConfirmation reports a confirmation, which is the answer to the oldest command. An
// unsubscription may also come unasked, when the slot of the channel moved. A subscription that was
// not asked for is a protocol error.
func (l *listener) takeConfirmation(msg *redis.Subscription) error {
	off := msg.Kind == "unsubscribe" || msg.Kind == "sunsubscribe"
	l.mu.Lock()
	asked := len(l.pending) > 0 && l.pending[0] == pendingCommand{msg.Channel, off}
	if asked {
		l.pending = l.pending[1:]
	}
	l.mu.Unlock()
	switch {
	case off:
		l.events.Unsubscribed(msg.Channel)
	case !asked:
		return fmt.Errorf("redisstore: the server answers what was not asked: %s %q", msg.Kind, msg.Channel)
	default:
		l.events.Subscribed(msg.Channel)
	}
	return nil
}

// takeRefusal reports the line of a refusal, which is the answer to the oldest command.
func (l *listener) takeRefusal(line string) error {
	l.mu.Lock()
	if len(l.pending) == 0 {
		l.mu.Unlock()
		return fmt.Errorf("redisstore: the server refuses what was not asked: %s", line)
	}
	oldest := l.pending[0]
	l.pending = l.pending[1:]
	l.mu.Unlock()
	l.events.Refused(oldest.channel, line)
	return nil
}

// Close implements store.Listener. It waits for the reader, which closing the connection ends.
func (l *listener) Close() {
	l.cancel()
	l.start.Do(func() {}) // no reader begins any more
	_ = l.pubsub.Close()  // the connection is of no use any more
	l.reader.Wait()
}

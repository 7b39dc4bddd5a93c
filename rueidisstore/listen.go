package rueidisstore

import (
	"context"
	"sync"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// A listener is one connection for messages: a dedicated one of the client, as Receive would
// subscribe again by itself, and nobody could tell when all channels are confirmed.
type listener struct {
	client   rueidis.DedicatedClient
	sharded  bool
	events   store.Events
	gone     <-chan error  // gets a value, or is closed, when the connection is lost
	closed   chan struct{} // by Close
	closing  sync.Once
	watching bool // only Subscribe and Unsubscribe look

	mu      sync.Mutex
	leaving map[string]bool // channels that Unsubscribe gives up now
}

// listen takes a connection of a client. No context interrupts that, so a caller that waits for
// it may go first.
func listen(ctx context.Context, client rueidis.Client, sharded bool, events store.Events) (store.Listener, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	made := make(chan *listener)
	go func() {
		l := &listener{sharded: sharded, events: events, closed: make(chan struct{}), leaving: map[string]bool{}}
		l.client, _ = client.Dedicate()
		l.gone = l.client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: l.message, OnSubscription: l.moved})
		select {
		case made <- l:
		case <-ctx.Done():
			l.client.Close()
		}
	}()
	select {
	case l := <-made:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// message hands a message on. It runs on the goroutine that reads, as moved does.
func (l *listener) message(m rueidis.PubSubMessage) { l.events.Message(m.Channel, m.Message) }

// moved hears that the server takes a sharded channel away. The client says so also where
// Unsubscribe asked for it; that is answered there.
func (l *listener) moved(m rueidis.PubSubSubscription) {
	if m.Kind != "sunsubscribe" {
		return
	}
	l.mu.Lock()
	asked := l.leaving[m.Channel]
	l.mu.Unlock()
	if !asked {
		l.events.Unsubscribed(m.Channel)
	}
}

// Subscribe implements store.Listener. The client returns when the server has answered.
func (l *listener) Subscribe(ctx context.Context, channels ...string) error {
	results, err := l.ask(ctx, channels, func(channel string) rueidis.Completed {
		if l.sharded {
			return l.client.B().Ssubscribe().Channel(channel).Build()
		}
		return l.client.B().Subscribe().Channel(channel).Build()
	})
	if err != nil {
		return err
	}
	for i, result := range results {
		switch reply := answer(result); {
		case reply.Err != nil:
			return reply.Err
		case reply.Refused != "":
			l.events.Refused(channels[i], reply.Refused)
		default:
			l.events.Subscribed(channels[i])
		}
	}
	return nil
}

// Unsubscribe implements store.Listener. The client asks for a PING behind each, which may be
// refused where the channel was not: an answer is an answer.
func (l *listener) Unsubscribe(ctx context.Context, channels ...string) error {
	l.leave(channels, true)
	defer l.leave(channels, false)
	results, err := l.ask(ctx, channels, func(channel string) rueidis.Completed {
		if l.sharded {
			return l.client.B().Sunsubscribe().Channel(channel).Build()
		}
		return l.client.B().Unsubscribe().Channel(channel).Build()
	})
	if err != nil {
		return err
	}
	for i, result := range results {
		if reply := answer(result); reply.Err != nil {
			return reply.Err
		}
		l.events.Unsubscribed(channels[i])
	}
	return nil
}

func (l *listener) leave(channels []string, asked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, channel := range channels {
		if asked {
			l.leaving[channel] = true
		} else {
			delete(l.leaving, channel)
		}
	}
}

// ask sends a command for each channel, in one flush, and returns their results.
func (l *listener) ask(ctx context.Context, channels []string, command func(string) rueidis.Completed) ([]rueidis.RedisResult, error) {
	commands := make([]rueidis.Completed, len(channels))
	for i, channel := range channels {
		commands[i] = command(channel)
	}
	if err := l.end(); err != nil {
		return nil, err
	}
	results := l.client.DoMulti(ctx, commands...)
	if err := l.end(); err != nil {
		return nil, err // the results may look like refusals, when one of the greeting was
	}
	if !l.watching {
		l.watching = true
		go l.watch()
	}
	return results, nil
}

// end is why the connection was lost, or nil.
func (l *listener) end() error {
	select {
	case err := <-l.gone:
		return reason(err)
	default:
		return nil
	}
}

// watch reports the end of the connection.
func (l *listener) watch() {
	select {
	case err := <-l.gone:
		l.events.Closed(reason(err))
	case <-l.closed:
	}
}

// reason is why a connection was lost.
func reason(err error) error {
	if err == nil {
		return rueidis.ErrClosing
	}
	return err
}

// Close implements store.Listener. It closes in the background, as that waits a second for a server
// that is silent.
func (l *listener) Close() {
	l.closing.Do(func() {
		close(l.closed)
		go l.client.Close()
	})
}

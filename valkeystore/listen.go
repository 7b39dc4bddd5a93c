// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"cmp"
	"context"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// A listener is one connection for messages. It is a dedicated one of the client and not that of
// Receive, which would subscribe again by itself, so that nobody could tell when all channels are
// confirmed.
type listener struct {
	client  valkey.DedicatedClient
	sharded bool
	events  store.Events
	lost    <-chan error  // gets the reason once, and is closed, when the connection is lost
	closed  chan struct{} // closed by Close
	closing sync.Once

	// Whether watch was started. Subscribe and Unsubscribe alone use it, and store.Listener says
	// that no two of them run at the same time.
	watching bool

	mu      sync.Mutex
	leaving map[string]bool // the channels that Unsubscribe is giving up; guarded by mu
}

// listen takes a connection of a client. No context interrupts that, so it is done on a goroutine
// that a caller does not wait for after the end of ctx.
func listen(ctx context.Context, client valkey.Client, sharded bool, events store.Events) (store.Listener, error) {
	if err := store.Ended(ctx); err != nil {
		return nil, err
	}
	made := make(chan *listener)
	go func() {
		l := &listener{sharded: sharded, events: events, closed: make(chan struct{}), leaving: map[string]bool{}}
		l.client, _ = client.Dedicate()
		l.lost = l.client.SetPubSubHooks(valkey.PubSubHooks{OnMessage: l.onMessage, OnSubscription: l.onSubscription})
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

// onMessage hands a message on. The client calls it from the goroutine that reads, as it does
// onSubscription.
func (l *listener) onMessage(m valkey.PubSubMessage) { l.events.Message(m.Channel, m.Message) }

// onSubscription reports a sharded channel that the server takes away by itself. The client also
// calls it for what Subscribe and Unsubscribe asked for, which they report themselves.
func (l *listener) onSubscription(m valkey.PubSubSubscription) {
	if m.Kind != "sunsubscribe" {
		return
	}
	l.mu.Lock()
	leaving := l.leaving[m.Channel]
	l.mu.Unlock()
	if !leaving {
		l.events.Unsubscribed(m.Channel)
	}
}

// Subscribe implements store.Listener. The client returns when the server has answered.
func (l *listener) Subscribe(ctx context.Context, channels ...string) error {
	results, err := l.send(ctx, channels, func(channel string) valkey.Completed {
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

// Unsubscribe implements store.Listener. The client sends a PING behind each command, and returns
// the answer to that. The server may refuse the PING and not the command, so a refusal is taken for
// a yes.
func (l *listener) Unsubscribe(ctx context.Context, channels ...string) error {
	l.setLeaving(channels, true)
	defer l.setLeaving(channels, false)
	results, err := l.send(ctx, channels, func(channel string) valkey.Completed {
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

func (l *listener) setLeaving(channels []string, leaving bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, channel := range channels {
		if leaving {
			l.leaving[channel] = true
		} else {
			delete(l.leaving, channel)
		}
	}
}

// send sends a command for each channel, in one flush, and returns their results. The error is why
// the connection was lost. Once one flush was answered, watch reports that as well.
func (l *listener) send(ctx context.Context, channels []string,
	command func(string) valkey.Completed) ([]valkey.ValkeyResult, error) {
	commands := make([]valkey.Completed, len(channels))
	for i, channel := range channels {
		commands[i] = command(channel)
	}
	if err := l.lostBecause(); err != nil {
		return nil, err
	}
	results := l.client.DoMulti(ctx, commands...)
	// If the server refused the handshake, the results look as if it refused the channels.
	if err := l.lostBecause(); err != nil {
		return nil, err
	}
	if !l.watching {
		l.watching = true
		go l.watch()
	}
	return results, nil
}

// lostBecause returns why the connection was lost, or nil if it is there.
func (l *listener) lostBecause() error {
	select {
	case err := <-l.lost:
		return cmp.Or(err, valkey.ErrClosing)
	default:
		return nil
	}
}

// watch reports the end of the connection, unless Close ended it.
func (l *listener) watch() {
	select {
	case err := <-l.lost:
		select {
		case <-l.closed: // both have come
		default:
			l.events.Closed(cmp.Or(err, valkey.ErrClosing))
		}
	case <-l.closed:
	}
}

// Close implements store.Listener. It closes in the background, as that waits a second for a server
// that is silent.
func (l *listener) Close() {
	l.closing.Do(func() {
		close(l.closed)
		go l.client.Close()
	})
}

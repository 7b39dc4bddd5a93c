package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A carrier subscribes every client to the marks, and takes it for a single server.
type carrier struct {
	wire.Store
	marks chan<- string
}

func (c carrier) Subscribe(ctx context.Context, sink wire.Sink) (wire.Subscription, error) {
	subscription, err := c.Store.Subscribe(ctx, marked{sink, c.marks})
	if err != nil {
		return nil, err
	}
	if err := subscription.Add(ctx, markChannel); err != nil {
		_ = subscription.Close()
		return nil, err
	}
	return subscription, nil
}

func (c carrier) Describe(context.Context) (wire.Topology, error) { return wire.Topology{}, nil }

// A marked sink takes the marks out of the messages. The server sends what it was told to publish
// in order, on one connection a client. So a client that has the mark has every message before the
// mark.
type marked struct {
	wire.Sink
	marks chan<- string
}

func (m marked) Message(channel, text string) {
	if channel == markChannel {
		m.marks <- text
		return
	}
	m.Sink.Message(channel, text)
}

const markChannel = "mark"

// A marker publishes marks, and waits for them.
type marker struct {
	srv   *redisserver.Server
	marks chan string
	n     int

	clients atomic.Int64 // how many subscriptions there are
}

// allHeard returns when all clients have heard what the server has published so far. The server
// notices the end of a subscription a moment after its client closed it.
func (m *marker) allHeard() error {
	late := time.After(30 * time.Second)
	for {
		m.n++
		n, err := m.srv.Do("PUBLISH", markChannel, m.n)
		if err == nil && n == m.clients.Load() {
			break
		}
		select {
		case <-late:
			return fmt.Errorf("a mark went to %v clients of %d: %w", n, m.clients.Load(), err)
		default:
		}
	}
	for heard := 0; heard < int(m.clients.Load()); {
		select {
		case mark := <-m.marks:
			if mark == strconv.Itoa(m.n) { // else one that came too late for an earlier call
				heard++
			}
		case <-late:
			return errors.New("a client does not hear the mark")
		}
	}
	return nil
}

// scripts is a protocol on a real server.
func scripts(t *testing.T, addr, prefix string, process int, marks chan<- string) protocol.Protocol {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	return native.New(carrier{wire.Route(redisstore.New(rdb)), marks}, native.Config{
		Prefix: prefix, Process: fmt.Sprintf("%022d", process), Timeout: 10 * time.Second,
	})
}

// subscribers are what the clients of one side were told, by ticket, and how often each.
type subscribers struct {
	mu       sync.Mutex
	granted  map[protocol.ID]int
	nudged   map[protocol.ID]bool  // the first in the queue, that a remainder keeps out; not how often
	broken   map[protocol.ID]bool  // the holder, that its hold was broken
	recalled map[protocol.ID]bool  // the holder that retains
	tokens   map[protocol.ID]int64 // also of those that were answered
}

// forget begins anew, for the next name. No message about an earlier name is under way.
func (e *subscribers) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.granted)
	clear(e.nudged)
	clear(e.broken)
	clear(e.recalled)
	clear(e.tokens)
}

func newSubscribers() *subscribers {
	return &subscribers{granted: map[protocol.ID]int{}, nudged: map[protocol.ID]bool{}, broken: map[protocol.ID]bool{},
		recalled: map[protocol.ID]bool{}, tokens: map[protocol.ID]int64{}}
}

func (e *subscribers) Granted(g protocol.Grant) {
	e.mu.Lock()
	e.granted[g.ID]++
	e.tokens[g.ID] = g.Token
	e.mu.Unlock()
}

func (e *subscribers) Nudge(id protocol.ID, _ time.Duration) {
	e.mu.Lock()
	e.nudged[id] = true
	e.mu.Unlock()
}

func (e *subscribers) Gap() {}

func (e *subscribers) Recall(id protocol.ID) {
	e.mu.Lock()
	e.recalled[id] = true
	e.mu.Unlock()
}

func (e *subscribers) Broken(id protocol.ID) {
	e.mu.Lock()
	e.broken[id] = true
	e.mu.Unlock()
}

// grant notes the token of a ticket that was answered with one.
func (e *subscribers) grant(id protocol.ID, answer protocol.Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if answer.Status == protocol.Held {
		e.tokens[id] = answer.Token
	}
}

// token is that of a ticket, as far as it was told.
func (e *subscribers) token(id protocol.ID) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tokens[id]
}

func (e *subscribers) told() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for id, n := range e.granted {
		all = append(all, fmt.Sprintf("%s x%d", id, n))
	}
	for id := range e.nudged {
		all = append(all, fmt.Sprintf("%s nudged", id))
	}
	for id := range e.broken {
		all = append(all, fmt.Sprintf("%s broken", id))
	}
	for id := range e.recalled {
		all = append(all, fmt.Sprintf("%s recalled", id))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A carrier is a store in the words of package native.
type carrier struct{ store holdfast.Store }

func (c carrier) Do(ctx context.Context, requests []native.Request) []native.Reply {
	in := make([]holdfast.Request, len(requests))
	for i := range requests {
		in[i] = holdfast.Request(requests[i])
	}
	out := make([]native.Reply, len(requests))
	for i, reply := range c.store.Do(ctx, in) {
		out[i] = native.Reply(reply)
	}
	return out
}

func (c carrier) Subscribe(ctx context.Context, sink native.Sink) (native.Subscription, error) {
	return c.store.Subscribe(ctx, sink)
}

func (c carrier) Describe(context.Context) (native.Topology, error) { return native.Topology{}, nil }

// scripts is a protocol on a real server.
func scripts(t *testing.T, addr, prefix string, process int) protocol.Protocol {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	return native.New(carrier{redisstore.New(rdb)}, native.Config{
		Prefix: prefix, Process: fmt.Sprintf("%022d", process), Timeout: 10 * time.Second,
	})
}

// ears are what the clients of one side were told, by ticket, and how often each.
type ears struct {
	mu       sync.Mutex
	changed  chan struct{}
	granted  map[protocol.ID]int
	nudged   map[protocol.ID]bool // the first in line, that a min hold keeps out; not how often
	replaced map[protocol.ID]bool // the former holder, that another took its hold over
	past     protocol.ID
	tokens   map[protocol.ID]int64 // also of those that were answered
}

// forget begins anew: for the next name, whose tickets are past the last. Messages about earlier ones may still be under way.
func (e *ears) forget(last protocol.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.past = last
	clear(e.granted)
	clear(e.nudged)
	clear(e.replaced)
	clear(e.tokens)
}

func newEars() *ears {
	return &ears{changed: make(chan struct{}, 1), granted: map[protocol.ID]int{}, nudged: map[protocol.ID]bool{},
		replaced: map[protocol.ID]bool{}, tokens: map[protocol.ID]int64{}}
}

func (e *ears) Granted(g protocol.Grant) {
	e.mu.Lock()
	e.granted[g.ID]++
	e.tokens[g.ID] = g.Token
	e.mu.Unlock()
	e.change()
}

func (e *ears) Nudge(id protocol.ID, _ time.Duration) {
	e.mu.Lock()
	if id > e.past {
		e.nudged[id] = true
	}
	e.mu.Unlock()
	e.change()
}

func (e *ears) Gap() {}

func (e *ears) Replaced(id protocol.ID) {
	e.mu.Lock()
	if id > e.past {
		e.replaced[id] = true
	}
	e.mu.Unlock()
	e.change()
}

func (e *ears) change() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// grant notes the token of a ticket that was answered with one.
func (e *ears) grant(id protocol.ID, answer protocol.Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if answer.Status == protocol.Held {
		e.tokens[id] = answer.Token
	}
}

// token is that of a ticket, as far as it was told.
func (e *ears) token(id protocol.ID) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tokens[id]
}

func (e *ears) told() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for id, n := range e.granted {
		all = append(all, fmt.Sprintf("%s x%d", id, n))
	}
	for id := range e.nudged {
		all = append(all, fmt.Sprintf("%s nudged", id))
	}
	for id := range e.replaced {
		all = append(all, fmt.Sprintf("%s replaced", id))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// will wait until the same was told here, and tells what was otherwise.
func (e *ears) will(want string) (got string, same bool) {
	late := time.After(30 * time.Second)
	for {
		if got = e.told(); got == want {
			return got, true
		}
		select {
		case <-e.changed:
		case <-late:
			return got, false
		}
	}
}

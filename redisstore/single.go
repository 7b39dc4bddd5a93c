package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// greetingTime bounds each answer while a connection for messages is made.
const greetingTime = 2 * time.Second

// single is a store on one server, or on the master that sentinels name.
type single struct {
	id string // of its only node
	*node
}

func newSingle(rdb *redis.Client) *single {
	return &single{id: rdb.Options().Addr, node: newNode(rdb)}
}

// Address returns the address of the server, for errors. It is empty for the master that sentinels
// name, which may be another server by now.
func (s *single) Address() string {
	if s.id == "FailoverClient" { // as go-redis calls it
		return ""
	}
	return s.id
}

func (s *single) Do(ctx context.Context, reqs []store.Request) []store.Reply {
	for i := range reqs {
		if reqs[i].Node != "" && reqs[i].Node != s.id {
			err := fmt.Errorf("redisstore: no node %q, there is only %q", reqs[i].Node, s.id)
			return unsent(make([]store.Reply, len(reqs)), err)
		}
	}
	return s.do(ctx, reqs)
}

func (s *single) Subscribe(ctx context.Context, sink store.Sink) (store.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return newSubscription(sink, listener(s.rdb)), nil
}

// listener returns a function that makes unconnected PubSubs. They speak RESP2, in which go-redis
// reads nothing but their messages, and take no longer than greetingTime for an answer, as no
// context interrupts that.
func listener(rdb *redis.Client) func() *redis.PubSub {
	limit := greetingTime
	if user := rdb.Options().ReadTimeout; user > 0 {
		limit = min(limit, user)
	}
	quiet := rdb.WithTimeout(limit)
	quiet.Options().ContextTimeoutEnabled = true
	quiet.Options().Protocol = 2
	quiet.Options().DialerRetries = 1 // the next connection is our own concern
	return func() *redis.PubSub { return quiet.Subscribe(context.Background()) }
}

func (s *single) Describe(ctx context.Context) (store.Topology, error) {
	node, err := describe(ctx, s.node)
	if err != nil {
		return store.Topology{}, err
	}
	node.ID = s.id
	return store.Topology{ShardedPubSub: shards(node.Version), Nodes: []store.Node{node}}, nil
}

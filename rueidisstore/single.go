package rueidisstore

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// single is a store on one server, or on the master that sentinels name.
type single struct{ client rueidis.Client }

// Address returns the address of the server, for errors. It is empty for a client that may change
// to another server, such as one of sentinels.
func (s *single) Address() string {
	for addr, node := range s.client.Nodes() {
		if reflect.ValueOf(node).Comparable() && node == s.client {
			return addr // the client of a node is of that one for ever
		}
	}
	return ""
}

func (s *single) Do(ctx context.Context, reqs []store.Request) []store.Reply {
	client, err := s.serving(reqs)
	if err != nil {
		return unsent(make([]store.Reply, len(reqs)), err)
	}
	replies := send(ctx, client, reqs)
	for i := range replies {
		if client != s.client && strings.HasPrefix(replies[i].Refused, "REDIRECT ") {
			poke(ctx, s.client, reqs[i].Key) // which follows, and the next requests find the new master
			break
		}
	}
	return replies
}

// serving is the client that carries the requests. A client that follows REDIRECT (EnableRedirect)
// does so with all commands of a batch for the sake of one, also with those that were carried out;
// the client of its node does not.
func (s *single) serving(reqs []store.Request) (rueidis.Client, error) {
	if len(reqs) == 1 && reqs[0].Node == "" && reqs[0].Replicas <= 0 {
		return s.client, nil
	}
	client, nodes := s.client, s.client.Nodes()
	if len(nodes) == 1 {
		for _, client = range nodes {
			break
		}
	}
	name := ""
	for i := range reqs {
		switch node := reqs[i].Node; {
		case node == "" || node == name:
		case nodes[node] == nil || name != "":
			return nil, fmt.Errorf("rueidisstore: no node %q, there is only %q", node, slices.Sorted(maps.Keys(nodes)))
		default:
			client, name = nodes[node], node
		}
	}
	return client, nil
}

func (s *single) Subscribe(ctx context.Context, sink store.Sink) (store.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return newSubscription(sink, func(context.Context) (rueidis.Client, error) { return s.client, nil }), nil
}

// Describe tells of the server, or of all that the client knows: those that do not answer are left
// out, unless all are.
func (s *single) Describe(ctx context.Context) (store.Topology, error) {
	var t store.Topology
	var failed error
	nodes := s.client.Nodes()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		node, err := describe(ctx, nodes[addr])
		if err != nil {
			failed = err
			continue
		}
		node.ID = addr
		t.ShardedPubSub = shards(node.Version) && (t.ShardedPubSub || len(t.Nodes) == 0)
		t.Nodes = append(t.Nodes, node)
	}
	if len(t.Nodes) == 0 && failed != nil {
		return store.Topology{}, failed
	}
	return t, nil
}

// poke sends something without effect that the smallest permissions allow, for the client to learn
// from the answer where the key is now.
func poke(ctx context.Context, client rueidis.Client, key string) {
	none := strings.Repeat("0", 40) // the digest of no script
	client.Do(ctx, client.B().Arbitrary("EVALSHA", none, "1").Keys(key).Blocking())
}

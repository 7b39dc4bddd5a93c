package holdfast

import (
	"context"
	"reflect"

	"github.com/holdfast-go/holdfast/internal/native"
)

// transport puts a Store in the words of package native, which cannot import this package.
type transport struct{ store Store }

// Do implements native.Server.
func (t transport) Do(ctx context.Context, requests []native.Request) []native.Reply {
	var in []Request
	var out []native.Reply
	if len(requests) == 1 { // mostly
		one := new(struct {
			in  [1]Request
			out [1]native.Reply
		})
		in, out = one.in[:], one.out[:]
	} else {
		in, out = make([]Request, len(requests)), make([]native.Reply, len(requests))
	}
	for i := range requests {
		in[i] = Request(requests[i])
	}
	replies := t.store.Do(ctx, in)
	for i := range out {
		if i < len(replies) {
			out[i] = native.Reply(replies[i])
		} else {
			out[i] = native.Reply{Err: errMissingReply}
		}
	}
	return out
}

// Subscribe implements native.Server.
func (t transport) Subscribe(ctx context.Context, sink native.Sink) (native.Subscription, error) {
	return t.store.Subscribe(ctx, sink)
}

// Describe implements native.Server.
func (t transport) Describe(ctx context.Context) (native.Topology, error) {
	topology, err := t.store.Describe(ctx)
	out := native.Topology{Cluster: topology.Cluster, ShardedPubSub: topology.ShardedPubSub, Warnings: topology.warnings()}
	for _, node := range topology.Nodes {
		own := native.Node{ID: node.ID}
		for _, r := range node.Slots {
			own.Slots = append(own.Slots, native.SlotRange(r))
		}
		out.Nodes = append(out.Nodes, own)
	}
	return out, err
}

// address returns the address of the only server behind a store. It is empty if there are several
// servers, or if the address may change.
func address(store Store) string {
	if s, ok := store.(interface{ Address() string }); ok {
		return s.Address()
	}
	return ""
}

// same tells whether two stores are equal. Stores of a type on which == panics are never the same.
func same(a, b Store) bool {
	return !isNil(a) && !isNil(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// checkStore refuses a value that is no store, and a store that can never work.
func (p *problems) checkStore(argument string, store Store) {
	if isNil(store) {
		p.add(argument, nil, "not nil")
		return
	}
	if s, ok := store.(interface{ Unusable() error }); ok && s.Unusable() != nil {
		p.add(argument, s.Unusable().Error(), "one that can work")
	}
}

// isNil finds a nil interface, and a nil pointer in an interface.
func isNil(store Store) bool {
	if store == nil {
		return true
	}
	v := reflect.ValueOf(store)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

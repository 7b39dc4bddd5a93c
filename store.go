package holdfast

import (
	"context"
	"fmt"
)

// A Store carries requests to a server of the Redis family. An adapter implements it. A store has
// no lock logic, no retries, and no batching of its own. All methods are safe for concurrent use.
// For adapters; may change before v1.
//
// A store that can never work, such as one made of a nil client, says why by a method Unusable()
// error as well. New and NewQuorum then refuse it with an *ArgumentError. Without that method,
// calls would wait as for a server that is away.
//
// A store on one server whose address does not change returns that address by a method Address()
// string as well. Errors then name it.
//
// The conformance suite in package storetest tests an implementation.
type Store interface {
	// Do sends every request once, never again, in one flush for each node. It returns a reply for
	// each request, in order. The deadline of ctx bounds Do even if the client library would wait
	// longer. Do may ignore the cancellation of ctx.
	Do(ctx context.Context, reqs []Request) []Reply

	// Subscribe opens a subscription without channels. ctx bounds the opening alone.
	Subscribe(ctx context.Context, sink Sink) (Subscription, error)

	// Describe returns what is behind the store. If the server refuses to say, the fields stay
	// zero.
	Describe(ctx context.Context) (Topology, error)
}

// A Request is one command of the server.
type Request struct {
	// Args are the command's name and its arguments. Each is a string, []byte, int or int64.
	Args []any

	// Key is a key of the request, for routing. All keys of the request lie in its slot. Empty: any
	// node.
	Key string

	// Node is the id of the node that must answer, from Topology. Empty: the master that serves
	// Key.
	Node string

	// Replicas, if positive, asks that so many replicas confirm the write: WAIT on the same
	// connection.
	Replicas int

	// ReplicasTimeout bounds the waiting for Replicas, in whole milliseconds.
	ReplicasTimeout int64
}

// A Reply is the answer to one request.
type Reply struct {
	// Value is the server's answer: string, int64, nil, or []any of these.
	Value any

	// Refused is the error line of the server, without the leading "-", such as
	// "NOSCRIPT No matching script." It says that the server answered; Value is then nil.
	Refused string

	// Err is set if no answer came, because of the network, a deadline or a closed client. Err is
	// also set if the server carried the request out and refuses to say which replicas have it. The
	// effect of the request is unknown, unless Unsent is set.
	Err error

	// Unsent is true if Err is known to have happened before a byte of the request was written.
	Unsent bool

	// Replicas is how many replicas confirmed, if the request asked.
	Replicas int

	// Node is the address of the server that the request was sent to, or could not be sent to. A
	// store of several servers sets Node if it is sure of the address. Errors name it.
	Node string
}

// A Sink receives what a subscription hears. Its methods return quickly and are called from one
// goroutine at a time.
type Sink interface {
	// Message receives one published message.
	Message(channel, payload string)

	// Gap says that messages may have been missed, because the connection was lost and is there
	// again. It is called after all channels are subscribed again.
	Gap()
}

// A Subscription receives messages on one connection, or on one connection for each node.
type Subscription interface {
	// Add subscribes a channel, and returns when the server has confirmed it. On a cluster with
	// ShardedPubSub, a channel with a hash tag is subscribed where its slot is served: SPUBLISH
	// reaches it, and PUBLISH does not. The subscription follows its slot. A move of the slot is a
	// gap.
	Add(ctx context.Context, channel string) error

	// Remove gives a channel up. Unknown channels are ignored.
	Remove(ctx context.Context, channel string) error

	// Close ends the subscription and its connection. The sink hears nothing more after Close has
	// returned.
	Close() error
}

// A Topology describes the servers behind a store.
type Topology struct {
	Cluster       bool // keys are spread over slots
	ShardedPubSub bool // SPUBLISH exists; on a cluster, at every node
	Nodes         []Node
}

// A Node is one server of a topology.
type Node struct {
	ID       string // stable while the node lives: its cluster id, or its address
	Role     string // "master" or "replica"; empty if not known
	Version  string // such as "7.0.15"; empty if not known
	Eviction string // its maxmemory-policy, if maxmemory is set; empty if not known
	Slots    []SlotRange
}

// warnings returns what users should know of a topology before they trust it.
func (t Topology) warnings() (warnings []string) {
	for _, n := range t.Nodes {
		if n.Eviction != "" && n.Eviction != "noeviction" {
			warnings = append(warnings, fmt.Sprintf("server %s may evict locks when its memory is full: its maxmemory-policy is %s, not noeviction", n.ID, n.Eviction))
		}
		if major, minor := release(n.Version); major > 0 && (major < 6 || major == 6 && minor < 2) {
			warnings = append(warnings, fmt.Sprintf("server %s is of version %s; holdfast is made for 6.2 and newer", n.ID, n.Version))
		}
	}
	return warnings
}

// release reads a version. It returns 0 for a text without a version.
func release(version string) (major, minor int) {
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor
}

// A SlotRange is a range of cluster slots, both ends included.
type SlotRange struct{ From, To int }

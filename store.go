package holdfast

import (
	"context"
	"fmt"
)

// A Store carries requests to a server of the Redis family. It is what an adapter implements: no lock logic, no
// retries, no batching of its own. All methods are safe for concurrent use. For adapters; may change before v1.
//
// A store that can never work, as one that was made of a nil client, says why by a method Unusable() error as well: New and
// NewQuorum refuse it with an *ArgumentError then. Without, its callers would wait as for a server that is away.
//
// A store on one server, whose address does not change, tells that address by a method Address()
// string as well: errors name it.
//
// The conformance suite in storetest tells whether an implementation is one.
type Store interface {
	// Do sends every request once, never again, in one flush a node, and returns a reply for each, in order.
	// ctx's deadline bounds it also where the client library would wait longer; ctx's cancellation may be ignored.
	Do(ctx context.Context, reqs []Request) []Reply

	// Subscribe opens a subscription without channels. ctx bounds the opening alone.
	Subscribe(ctx context.Context, sink Sink) (Subscription, error)

	// Describe tells what is behind the store. Where the server refuses to say, the fields stay zero.
	Describe(ctx context.Context) (Topology, error)
}

// A Request is one command of the server.
type Request struct {
	// Args are the command's name and its arguments: strings, []byte, int and int64 alone.
	Args []any

	// Key is a key of the request, for routing: all its keys lie in the slot of this one. Empty: any node.
	Key string

	// Node is the id of the node that must answer, from Topology. Empty: the master that serves Key.
	Node string

	// Replicas, when positive, asks that so many replicas confirm the write: WAIT on the same connection.
	Replicas int

	// ReplicasTimeout bounds the waiting for Replicas, in whole milliseconds.
	ReplicasTimeout int64
}

// A Reply is the answer to one request.
type Reply struct {
	// Value is the server's answer: string, int64, nil, or []any of these.
	Value any

	// Refused is the error line of the server, without the leading "-", such as "NOSCRIPT No matching script."
	// It says that the server answered; Value is then nil.
	Refused string

	// Err is set when no answer came: the network, a deadline, a closed client; or when the server carried the request out and
	// refuses to say which replicas have it. What the request did is unknown, unless Unsent is set.
	Err error

	// Unsent is true when Err is known to have happened before a byte of the request was written.
	Unsent bool

	// Replicas is how many replicas confirmed, when the request asked.
	Replicas int

	// Node is the address of the server that the request was sent to, or could not be sent to. A
	// store of several servers sets it where it knows that for sure: errors name it.
	Node string
}

// A Sink takes what a subscription hears. Its methods return quickly and are called from one goroutine at a time.
type Sink interface {
	// Message is one published message.
	Message(channel, payload string)

	// Gap says that messages may have been missed, because the connection was lost and is there again. It is
	// called after all channels are subscribed again.
	Gap()
}

// A Subscription is one connection, or one a node, on which messages come.
type Subscription interface {
	// Add subscribes a channel, and returns when the server has confirmed it. On a cluster with ShardedPubSub, a channel
	// with a hash tag is subscribed where its slot is served: SPUBLISH reaches it, and PUBLISH does not. It follows its
	// slot, which is a gap.
	Add(ctx context.Context, channel string) error

	// Remove gives a channel up. Unknown channels are ignored.
	Remove(ctx context.Context, channel string) error

	// Close ends the subscription and its connection. The sink hears nothing more once it has returned.
	Close() error
}

// A Topology is what a store knows of its servers.
type Topology struct {
	Cluster       bool // keys are spread over slots
	ShardedPubSub bool // SPUBLISH is there; on a cluster, at every node
	Nodes         []Node
}

// A Node is one server of a topology.
type Node struct {
	ID       string // stable while the node lives: its cluster id, or its address
	Role     string // "master" or "replica"; empty when not known
	Version  string // such as "7.0.15"; empty when not known
	Eviction string // its maxmemory-policy, where maxmemory is set; empty when not known
	Slots    []SlotRange
}

// warnings are what users should know of a topology before they trust it.
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

// release reads a version; 0 where there is none.
func release(version string) (major, minor int) {
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor
}

// A SlotRange is a range of cluster slots, both ends included.
type SlotRange struct{ From, To int }

package wire

import "context"

// A Store carries requests to the servers that their keys lead to. Route makes one of what an
// adapter brings. All methods are safe for concurrent use.
type Store interface {
	// Do sends every request once, in one flush a node, and again only if the server said that it
	// did not carry the request out, or if the request is known to be unsent. It returns a reply
	// for each request, in order. The deadline of ctx bounds Do. Do may ignore the cancellation
	// of ctx.
	Do(ctx context.Context, requests []Request) []Reply

	// Subscribe opens a subscription without channels, and sends nothing. ctx bounds the opening
	// alone.
	Subscribe(ctx context.Context, sink Sink) (Subscription, error)

	// Describe tells what is behind the store. Where the server refuses to say, the fields stay
	// zero.
	Describe(ctx context.Context) (Topology, error)
}

// A Request is one command of the server.
type Request struct {
	// Args are the command's name and its arguments: strings, []byte, int and int64 alone.
	Args []any

	// Op is the operation that it is for, as errors name it. It is counted by that.
	Op string

	// Key is a key of the request, for routing: all its keys lie in the slot of this one. Empty:
	// any node.
	Key string

	// Node is the id of the node that must answer, from Topology. Empty: the master that serves
	// Key.
	Node string

	// Replicas, when positive, asks that so many replicas confirm the write: WAIT on the same
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

	// Err is set when no answer came: the network, a deadline, a closed client. It is also set when
	// the server carried the request out and refuses to say which replicas have it. The effect of
	// the request is unknown, unless Unsent is set.
	Err error

	// Unsent is true when Err is known to have happened before a byte of the request was written.
	Unsent bool

	// Replicas is how many replicas confirmed, when the request asked.
	Replicas int

	// Node is the address of the server that the request was sent to, or could not be sent to. It
	// is set where there are several servers. Errors name it.
	Node string
}

// A Sink takes what a subscription receives. Its methods return quickly. A subscription calls them
// from one goroutine at a time.
type Sink interface {
	// Message is one published message.
	Message(channel, payload string)

	// Gap says that messages may have been missed, because the connection was lost and is there
	// again. A subscription calls it after all channels of that connection are subscribed again.
	Gap()
}

// A Subscription keeps channels subscribed, on one connection, or on one a node.
type Subscription interface {
	// Add subscribes a channel, and returns when the server has confirmed it. On a cluster with
	// ShardedPubSub, a channel with a hash tag is subscribed where its slot is served: SPUBLISH
	// reaches it, and PUBLISH does not. The channel follows its slot, which is a gap.
	//
	// Add fails at once with the server's words when the server refuses the channel, and when no
	// connection can be made. The channel is then not subscribed, unless it was before. The same
	// holds when ctx is over first.
	Add(ctx context.Context, channel string) error

	// Remove gives a channel up. Messages that are on their way may still come. Unknown channels
	// are ignored.
	Remove(ctx context.Context, channel string) error

	// Close ends the subscription and its connections. Calls of Add fail. The sink receives nothing
	// more once Close has returned. The sink must not call it. Further calls do nothing.
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

// A SlotRange is a range of cluster slots, both ends included.
type SlotRange struct{ From, To int }

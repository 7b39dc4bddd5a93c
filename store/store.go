package store

import "context"

// A Store carries requests to a server of the Redis family. All methods are safe for concurrent
// use.
//
// A store may implement Addresser and Checker as well.
type Store interface {
	// Do sends every request once, never again, in one flush a node. It returns a reply for each
	// request, in order. The deadline of ctx bounds Do, also where the client library would wait
	// longer. Do may ignore the cancellation of ctx.
	Do(ctx context.Context, requests []Request) []Reply

	// Subscribe opens a subscription without channels. ctx bounds the opening alone.
	Subscribe(ctx context.Context, sink Sink) (Subscription, error)

	// Describe tells what is behind the store. Where the server refuses to say, the fields stay
	// zero.
	Describe(ctx context.Context) (Topology, error)
}

// An Addresser is a Store on one server whose address does not change. Errors name the address.
type Addresser interface {
	Address() string // empty: not known
}

// A Checker is a Store that may never be able to work, such as one that was made of a nil client.
// holdfast.New and holdfast.NewQuorum refuse it with an *ArgumentError that gives the reason.
// Without this method its callers would wait as for a server that is away.
type Checker interface {
	Unusable() error // the reason; nil: the store can work
}

// A Request is one command of the server.
type Request struct {
	// Args are the command's name and its arguments: strings, []byte, int and int64 alone.
	Args []any

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
	// the server carried the request out and refuses to say which replicas have it. What the
	// request did is unknown, unless Unsent is set.
	Err error

	// Unsent is true when Err is known to have happened before a byte of the request was written.
	Unsent bool

	// Replicas is how many replicas confirmed, when the request asked.
	Replicas int

	// Node is the address of the server that the request was sent to, or could not be sent to. A
	// store of several servers sets it where it knows that for sure. Errors name it.
	Node string
}

package store

import "context"

// A Store carries commands to the nodes of the Redis family that a client library knows. All
// methods are safe for concurrent use. A store does not own its client.
//
// A store may implement Addresser and Checker as well.
type Store interface {
	// Do sends commands to a node and returns a reply for each, in order. All commands reach one
	// connection in order, with nothing between, and each is sent once. So ASKING counts for the
	// command behind it, and WAIT for those before it.
	//
	// The deadline of ctx bounds Do, also where the client library would wait longer or less long.
	// Do may ignore the cancellation of ctx. On failure each reply says of its own command whether
	// it is unsent; those of other commands of the same Do may have an answer. A node that the
	// client has not met, or that is gone, makes all replies unsent. Do does not look for another.
	Do(ctx context.Context, node string, commands []Command) []Reply

	// Nodes names the nodes that the client has met. It costs a request at most the first time,
	// when the client has met none. On failure the caller knows nothing of the nodes.
	Nodes(ctx context.Context) (Nodes, error)

	// Refresh makes the client learn of nodes that it has not met: Nodes may name more afterwards,
	// and fewer. Key is one whose slot such a node may serve, for a client that learns from an
	// answer to a request. The store may send a command without effect for it. On failure Nodes
	// stays what it was.
	Refresh(ctx context.Context, key string) error

	// Renew has later commands to a node, and later listeners there, go over connections that are
	// made after the call. The caller has found a connection silent, or leading to a server that is
	// not the right one any more, such as a master that became a replica. What is under way goes
	// on. Renew returns when it is done, which may take as long as making a connection. For a node
	// that the client has not met it does nothing.
	//
	// A store on a client with a pool ends the connections that rest there, also those that others
	// have used. It ends none that is in use, or that carries the commands of several callers at a
	// time. One that was in use may be used again, and the caller then finds it out again.
	Renew(node string)

	// Listen opens a connection for messages at a node. The connection carries nothing else. A
	// sharded one subscribes by SSUBSCRIBE. Ctx bounds the opening alone, and Listen returns when
	// ctx is over at the latest. On failure there is no connection, and events gets nothing.
	//
	// Listen may return before the client has dialed. Subscribe then connects.
	Listen(ctx context.Context, node string, sharded bool, events Events) (Listener, error)
}

// Nodes are the servers behind a store.
type Nodes struct {
	Cluster   bool     // keys are spread over slots
	Addresses []string // what Do and Listen accept as a node
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

// A Command is the name of a command and its arguments: strings, []byte, int and int64 alone.
type Command []any

// A Reply is the answer to one command.
type Reply struct {
	// Value is the server's answer: string, int64, nil, or []any of these.
	Value any

	// Refused is the error line of the server, without the leading "-", such as
	// "NOSCRIPT No matching script." It says that the server answered; Value is then nil.
	Refused string

	// Err is set when no answer came: the network, a deadline, a closed client. The effect of the
	// command is unknown, unless Unsent is set. A *PoolError says that no server is to blame.
	Err error

	// Unsent is true when Err is known to have happened before a byte of the command was written.
	Unsent bool
}

// A Listener is one connection for messages at one node. It is never made again: after its end the
// caller opens another. Only one goroutine at a time calls Subscribe and Unsubscribe; Close may be
// called beside them.
type Listener interface {
	// Subscribe asks the server for channels, by a command for each, so that it can refuse one and
	// take the others. The first call connects if Listen has not. The server's answers come as
	// events, one for each channel that was named: Subscribed or Refused. They may come before
	// Subscribe returns. A channel that is subscribed already may be named again, and the server
	// answers again. That is the sign of life: it needs no permission beyond that to subscribe.
	//
	// Ctx bounds the call. After an error the connection is of no use, and the caller closes it.
	Subscribe(ctx context.Context, channels ...string) error

	// Unsubscribe gives channels up. The answers are Unsubscribed or Refused, one for each channel.
	// All else is as for Subscribe.
	Unsubscribe(ctx context.Context, channels ...string) error

	// Close ends the connection, and may do so in the background. It does not wait for a silent
	// server. Events may come until the connection has ended. Further calls do nothing.
	Close()
}

// Events take what a Listener receives. The methods return quickly, and may be called from several
// goroutines. Answers to the Subscribe and Unsubscribe of one channel come in order.
type Events interface {
	// Message is one published message.
	Message(channel, payload string)

	// Subscribed says that the server has confirmed a channel.
	Subscribed(channel string)

	// Unsubscribed says that the server has taken a channel away: because it was asked to, or by
	// itself, as on a cluster when another node serves the slot of a sharded channel.
	Unsubscribed(channel string)

	// Refused says that the server has refused a channel, with the error line as in Reply. Other
	// channels are left as they were.
	Refused(channel, line string)

	// Closed says that the connection has ended, and why. It comes once, and not after Close. A
	// Listener that finds its end only when it is next used says so by an error of Subscribe.
	Closed(err error)
}

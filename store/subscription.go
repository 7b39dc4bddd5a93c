package store

import "context"

// A Sink takes what a subscription receives. Its methods return quickly. A subscription calls them
// from one goroutine at a time.
type Sink interface {
	// Message is one published message.
	Message(channel, payload string)

	// Gap says that messages may have been missed, because the connection was lost and is there
	// again. A subscription calls it after all channels are subscribed again.
	Gap()
}

// A Subscription is one connection, or one a node, on which messages come.
type Subscription interface {
	// Add subscribes a channel, and returns when the server has confirmed it. On a cluster with
	// ShardedPubSub, a channel with a hash tag is subscribed where its slot is served: SPUBLISH
	// reaches it, and PUBLISH does not. The channel follows its slot, which is a gap.
	Add(ctx context.Context, channel string) error

	// Remove gives a channel up. Unknown channels are ignored.
	Remove(ctx context.Context, channel string) error

	// Close ends the subscription and its connection. The sink receives nothing more once Close
	// has returned.
	Close() error
}

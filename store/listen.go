package store

import "context"

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

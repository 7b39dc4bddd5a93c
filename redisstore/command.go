package redisstore

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// A command is one request on its way through go-redis.
type command struct {
	redis.Cmd
	written bool // go-redis has asked for the arguments, which it does in order to write them
}

// NoRetry makes every kind of client send the command once, alone and in pipelines.
func (c *command) NoRetry() bool { return true }

// Args notes that the command may be on the wire from now on. A hook may ask as well; neverWritten
// is for that.
func (c *command) Args() []any {
	c.written = true
	return c.Cmd.Args()
}

// answer returns what became of the command, once it was processed.
func (c *command) answer() store.Reply {
	err := c.Err()
	if err == nil {
		return store.Reply{Value: store.Plain(c.Val())}
	}
	if text, ok := refusal(err); ok {
		return store.Reply{Refused: text}
	}
	if errors.Is(err, redis.Nil) {
		return store.Reply{}
	}
	return store.Reply{Err: err, Unsent: !c.written || neverWritten(err)}
}

// refusal returns the error line of the server, if err is one. It may be the answer to the greeting
// of a new connection, such as WRONGPASS; the request was not carried out then either.
func refusal(err error) (string, bool) {
	var line redis.Error
	if !errors.As(err, &line) || line == redis.Nil {
		return "", false
	}
	return line.Error(), true
}

// neverWritten knows the errors that come before a connection is there.
func neverWritten(err error) bool {
	var op *net.OpError
	return errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.Is(err, redis.ErrPoolExhausted) || errors.As(err, &op) && op.Op == "dial"
}

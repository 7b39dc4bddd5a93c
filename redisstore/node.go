package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// A node sends commands to one server, each once, bounded by the deadline of ctx.
type node struct {
	rdb     *redis.Client
	bounded *redis.Client // on rdb's connections; ctx's deadline is its only timeout
}

func newNode(rdb *redis.Client) *node {
	n := &node{rdb: rdb, bounded: rdb}
	if opt := rdb.Options(); !opt.ContextTimeoutEnabled || opt.ReadTimeout < 0 || opt.WriteTimeout < 0 {
		n.bounded = bounded(rdb, 0)
	}
	return n
}

// bounded returns a client on rdb's connections, with options of its own.
func bounded(rdb *redis.Client, timeout time.Duration) *redis.Client {
	rdb = rdb.WithTimeout(timeout)
	rdb.Options().ContextTimeoutEnabled = true
	return rdb
}

// do sends the commands in one flush and returns their replies.
func (n *node) do(ctx context.Context, commands []store.Command) []store.Reply {
	if err := store.Ended(ctx); err != nil {
		return store.Unsent(len(commands), err)
	}
	rdb := n.rdb
	if _, ok := ctx.Deadline(); ok {
		rdb = n.bounded
	}
	if len(commands) == 1 {
		alone := &struct {
			command
			reply [1]store.Reply
		}{command: command{Cmd: *redis.NewCmd(ctx, commands[0]...)}}
		_ = rdb.Process(ctx, &alone.command) // the command has the error too
		alone.reply[0] = n.answer(&alone.command)
		return alone.reply[:]
	}
	replies := make([]store.Reply, len(commands))
	sent := make([]command, len(commands))
	pipe := rdb.Pipeline()
	for i := range sent {
		sent[i].Cmd = *redis.NewCmd(ctx, commands[i]...)
		_ = pipe.Process(ctx, &sent[i]) // which only queues
	}
	_, err := pipe.Exec(ctx) // the commands have the errors too, as a rule
	for i := range sent {
		// the server refused the greeting of a new connection
		if err != nil && !sent[i].written && sent[i].Err() == nil {
			sent[i].SetErr(err)
		}
		replies[i] = n.answer(&sent[i])
	}
	return replies
}

// answer returns what became of a command. That it is unsent may be for want of a free connection.
func (n *node) answer(c *command) store.Reply {
	reply := c.answer()
	if reply.Unsent && slices.ContainsFunc(waits, func(wait error) bool { return errors.Is(reply.Err, wait) }) {
		stats, opt := n.rdb.PoolStats(), n.rdb.Options()
		inUse := int(stats.TotalConns - stats.IdleConns)
		if inUse >= opt.PoolSize || opt.MaxActiveConns > 0 && inUse >= opt.MaxActiveConns {
			reply.Err = fmt.Errorf("%w: %w", &store.PoolError{Size: inUse}, reply.Err)
		}
	}
	return reply
}

// waits are the ends of waiting for a connection of the pool.
var waits = []error{context.DeadlineExceeded, redis.ErrPoolTimeout, redis.ErrPoolExhausted}

// renew ends the connections of the pool that rest, if a new one can be made. Otherwise the server
// stands still, and they are as good as any. Each gets a command that cannot be written, so that
// go-redis closes it.
func (n *node) renew() {
	pubsub := newPubSub(n.rdb) // which is never on a connection of the pool
	defer pubsub.Close()
	if pubsub.Ping(context.Background()) != nil {
		return
	}
	rdb := bounded(n.rdb, 0)
	rdb.Options().Limiter = nil // which need not know
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	for range rdb.PoolStats().IdleConns {
		if rdb.PoolStats().IdleConns > 0 { // otherwise go-redis would make one
			_ = rdb.Process(ctx, &command{Cmd: *redis.NewCmd(ctx, struct{}{})})
		}
	}
}

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

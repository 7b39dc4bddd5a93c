package redisstore

import (
	"context"
	"errors"
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
		n.bounded = rdb.WithTimeout(0) // with options of its own
		n.bounded.Options().ContextTimeoutEnabled = true
	}
	return n
}

// do sends the commands in one flush and returns their replies.
func (n *node) do(ctx context.Context, commands []store.Command) []store.Reply {
	rdb := n.rdb
	if deadline, ok := ctx.Deadline(); ok {
		if time.Until(deadline) <= 0 {
			return store.Unsent(len(commands), context.DeadlineExceeded)
		}
		rdb = n.bounded
	}
	if err := ctx.Err(); err != nil {
		return store.Unsent(len(commands), err)
	}
	if len(commands) == 1 {
		alone := &struct {
			command
			reply [1]store.Reply
		}{command: command{Cmd: *redis.NewCmd(ctx, commands[0]...)}}
		_ = rdb.Process(ctx, &alone.command) // the command has the error too
		alone.reply[0] = alone.answer()
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
		if err != nil && !sent[i].written && sent[i].Err() == nil { // the server refused the greeting of a new connection
			sent[i].SetErr(err)
		}
		replies[i] = sent[i].answer()
	}
	return replies
}

// renewTime bounds renew, which makes a connection if another caller has just taken the last one
// that rested.
const renewTime = 100 * time.Millisecond

// renew ends the connections of the pool that rest. Each gets a command that cannot be written, so
// that go-redis closes it.
func (n *node) renew() {
	rdb := n.rdb.WithTimeout(0) // with options of its own
	rdb.Options().ContextTimeoutEnabled = true
	rdb.Options().Limiter = nil // which need not know
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	for range rdb.PoolStats().IdleConns {
		if ctx.Err() == nil && rdb.PoolStats().IdleConns > 0 {
			_ = rdb.Process(ctx, &command{Cmd: *redis.NewCmd(ctx, unwritable{})})
		}
	}
}

// An unwritable is an argument that no command can have.
type unwritable struct{}

// MarshalBinary implements encoding.BinaryMarshaler, for go-redis.
func (unwritable) MarshalBinary() ([]byte, error) {
	return nil, errors.New("redisstore: the connection is ended")
}

package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// A node sends requests to one server, each once, bounded by the deadline of ctx.
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

// do sends the requests in one flush and returns their replies.
func (n *node) do(ctx context.Context, reqs []store.Request) []store.Reply {
	rdb := n.rdb
	if deadline, ok := ctx.Deadline(); ok {
		if time.Until(deadline) <= 0 {
			return unsent(make([]store.Reply, len(reqs)), context.DeadlineExceeded)
		}
		rdb = n.bounded
	}
	if err := ctx.Err(); err != nil {
		return unsent(make([]store.Reply, len(reqs)), err)
	}
	if len(reqs) == 1 && reqs[0].Replicas <= 0 {
		alone := &struct {
			command
			reply [1]store.Reply
		}{command: newCommand(ctx, reqs[0].Args)}
		_ = rdb.Process(ctx, &alone.command) // the command has the error too
		alone.reply[0] = alone.answer()
		return alone.reply[:]
	}
	return n.flush(ctx, rdb, reqs)
}

// flush sends the requests in one pipeline, and one WAIT behind them for those that ask for
// replicas: it counts the replicas that have everything written on its connection, so a single one
// at the end holds for all.
func (n *node) flush(ctx context.Context, rdb *redis.Client, reqs []store.Request) []store.Reply {
	replies := make([]store.Reply, len(reqs))
	if len(reqs) == 0 {
		return replies
	}
	var replicas int
	var timeout int64
	for i := range reqs {
		if reqs[i].Replicas > 0 {
			replicas, timeout = max(replicas, reqs[i].Replicas), max(timeout, reqs[i].ReplicasTimeout, 1) // 0 is for ever
		}
	}
	if limit := n.rdb.Options().ReadTimeout; replicas > 0 && rdb != n.bounded && limit > 0 {
		var cancel context.CancelFunc // no deadline, and the answer comes later than the client expects
		ctx, cancel = context.WithTimeout(ctx, limit+time.Duration(timeout)*time.Millisecond)
		defer cancel()
		rdb = n.bounded
	}
	commands := make([]command, len(reqs))
	pipe := rdb.Pipeline()
	for i := range commands {
		commands[i] = newCommand(ctx, reqs[i].Args)
		_ = pipe.Process(ctx, &commands[i]) // which only queues
	}
	var wait command
	if replicas > 0 {
		wait = newCommand(ctx, []any{"WAIT", replicas, timeout})
		_ = pipe.Process(ctx, &wait)
	}
	_, _ = pipe.Exec(ctx) // the commands have the errors too
	confirmed, _ := wait.Val().(int64)
	for i := range commands {
		replies[i] = commands[i].answer()
		switch {
		case reqs[i].Replicas <= 0 || replies[i].Err != nil || replies[i].Refused != "":
		case hasPrefix(wait.answer().Refused, "NOPERM"): // carried out, and nobody may ask whether by others
			replies[i] = store.Reply{Err: wait.Err()}
		default:
			replies[i].Replicas = int(confirmed)
		}
	}
	return replies
}

package redisstore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
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

// renewTime is how long renew may hold its caller up, and renewLimit how long it may take.
const renewTime, renewLimit = 100 * time.Millisecond, time.Second

// renew ends the connections of the pool that rest, if the server answers over a new one. Otherwise
// it stands still, and they are as good as any.
func (n *node) renew() {
	held, free := context.WithTimeout(context.Background(), renewTime)
	go func() {
		defer free()
		ctx, cancel := context.WithTimeout(context.Background(), renewLimit)
		defer cancel()
		if answers(ctx, n.rdb.Options()) {
			n.endResting(ctx)
		}
	}()
	<-held.Done()
}

// answers reports whether the server answers a client that has not greeted it, also by a refusal,
// and would take it.
func answers(ctx context.Context, opt *redis.Options) bool {
	conn, err := opt.Dialer(ctx, opt.Network, opt.Addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	_, _ = io.WriteString(conn, "*1\r\n$4\r\nPING\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && !strings.Contains(line, "max number of clients")
}

// endResting gives each connection that rests a command that cannot be written, so that go-redis
// closes it.
func (n *node) endResting(ctx context.Context) {
	rdb := n.rdb.WithTimeout(0) // with options of its own
	rdb.Options().ContextTimeoutEnabled = true
	rdb.Options().Limiter = nil // which need not know
	for range rdb.PoolStats().IdleConns {
		if rdb.PoolStats().IdleConns > 0 { // otherwise go-redis would make one
			_ = rdb.Process(ctx, &command{Cmd: *redis.NewCmd(ctx, unwritable{})})
		}
	}
}

// An unwritable is an argument that no command can have.
type unwritable struct{}

// MarshalBinary implements encoding.BinaryMarshaler, for go-redis.
func (unwritable) MarshalBinary() ([]byte, error) { return nil, errors.New("never written") }

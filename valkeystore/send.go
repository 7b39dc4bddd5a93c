// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// patience bounds what comes without a deadline.
const patience = 10 * time.Second

// send sends the commands to one server, each once, in one flush, and returns their replies.
func send(ctx context.Context, client valkey.Client, commands []store.Command) []store.Reply {
	if err := store.Ended(ctx); err != nil {
		return store.Unsent(len(commands), err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if len(commands) == 1 {
		only, err := build(client, commands[0])
		if err != nil {
			return store.Unsent(1, err)
		}
		return []store.Reply{answer(client.Do(ctx, only))}
	}
	built := make([]valkey.Completed, len(commands))
	for i, command := range commands {
		var err error
		if built[i], err = build(client, command); err != nil {
			return store.Unsent(len(commands), err)
		}
	}
	replies := make([]store.Reply, len(commands))
	for i, result := range client.DoMulti(ctx, built...) {
		replies[i] = answer(result)
	}
	return replies
}

// poke sends something without effect that the smallest permissions allow, for the client to
// learn from the answer where the key is now.
func poke(ctx context.Context, client valkey.Client, key string) {
	const none = "0000000000000000000000000000000000000000" // the digest of no script
	client.Do(ctx, client.B().Arbitrary("EVALSHA", none, "1").Keys(key).Blocking())
}

// mostResting bounds a renewal. The pool of a client has 1,024 connections by default.
const mostResting = 4096

// renew ends the connections for blocking commands that rest. Each is given a command that is too
// late to be written, so that the client closes it. If the client pipelines there, the command may
// be answered instead. A command that no connection was there for says that none rests, or that the
// client is closed: a closed one gives its last error for ever.
func renew(client valkey.Client) {
	for range mostResting {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		late := &lateContext{Context: ctx}
		reply := answer(client.Do(late, client.B().Arbitrary("PING").Blocking()))
		cancel()
		if late.derived.Load() || reply.Unsent {
			return
		}
		if reply.Err == nil { // the client first uses the one that was used last
			dedicated, _ := client.Dedicate()
			dedicated.Close()
		}
	}
}

// A lateContext is a context whose deadline is over, though it does not say so yet. The client
// derives contexts from it in order to make a connection, or to wait for one: when none rests.
type lateContext struct {
	context.Context
	derived atomic.Bool
}

func (c *lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func (c *lateContext) Value(key any) any {
	c.derived.Store(true)
	return c.Context.Value(key)
}

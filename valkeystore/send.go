// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"errors"
	"fmt"
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
		return inPool(client, []store.Reply{answer(client.Do(ctx, only))})
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
	return inPool(client, replies)
}

// inPool notes, in replies that did not come in time, that the pool of the client is full: they may
// have waited there.
func inPool(client valkey.Client, replies []store.Reply) []store.Reply {
	if len(replies) == 0 || !errors.Is(replies[0].Err, context.DeadlineExceeded) {
		return replies
	}
	if late := tooLate(client); late.used.Load() && !late.asked.Load() {
		err := fmt.Errorf("%w: %w", &store.PoolError{}, replies[0].Err)
		for i := range replies {
			replies[i].Err = err
		}
	}
	return replies
}

// poke sends something without effect that the smallest permissions allow, for the client to
// learn from the answer where the key is now.
func poke(ctx context.Context, client valkey.Client, key string) {
	const none = "0000000000000000000000000000000000000000" // the digest of no script
	client.Do(ctx, client.B().Arbitrary("EVALSHA", none, "1").Keys(key).Blocking())
}

// renew ends the connections for blocking commands that rest.
func renew(client valkey.Client) {
	for {
		late := tooLate(client)
		if late.used.Load() || errors.Is(late.reply.Err, valkey.ErrClosing) {
			return // none rested
		}
		if late.reply.Err == nil { // the client uses the last one first that was used
			dedicated, _ := client.Dedicate()
			dedicated.Close()
		}
	}
}

// tooLate sends a command that is too late to be written: if a connection for blocking commands
// rests, the client closes it. If the client pipelines there, the command may be answered instead.
func tooLate(client valkey.Client) *lateContext {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	late := &lateContext{Context: ctx}
	late.reply = answer(client.Do(late, client.B().Arbitrary("PING").Blocking()))
	return late
}

// A lateContext is a context whose deadline is over, though it does not say so yet. The client
// derives contexts from it only in order to make a connection, or to wait for one.
type lateContext struct {
	context.Context
	used  atomic.Bool // it derived one
	asked atomic.Bool // it asked for the deadline: it has a connection, or makes one
	reply store.Reply
}

func (c *lateContext) Deadline() (time.Time, bool) {
	c.asked.Store(true)
	return time.Unix(1, 0), true
}

func (c *lateContext) Value(key any) any {
	c.used.Store(true)
	return c.Context.Value(key)
}

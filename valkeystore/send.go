// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// patience bounds what comes without a deadline.
const patience = 10 * time.Second

// send sends the commands to one server, each once, in one flush, and returns their replies.
func send(ctx context.Context, client valkey.Client, commands []store.Command) []store.Reply {
	if err := over(ctx); err != nil {
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

// over tells that ctx has ended, also when its timer has not noticed.
func over(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// renewTime bounds the waiting for renew. A DialFn that takes no context may hold it up.
const renewTime = 100 * time.Millisecond

// renew ends the connections for blocking commands that rest, and returns when that is done, or
// after renewTime.
func renew(client valkey.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	go func() {
		defer cancel()
		for range 10_000 { // more than any pool has
			if !endResting(client) {
				return
			}
		}
	}()
	<-ctx.Done()
}

// endResting ends the connection that the client would use next, and reports whether one rested. It
// sends a command that is too late to be written, after which the client closes the connection. If
// the client pipelines on all connections, the command may be answered instead.
func endResting(client valkey.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime/10)
	defer cancel()
	late := &lateContext{Context: ctx}
	reply := answer(client.Do(late, client.B().Arbitrary("PING").Blocking()))
	if late.used.Load() || errors.Is(reply.Err, valkey.ErrClosing) {
		return false
	}
	if reply.Err == nil { // the client would use the last one that was used
		dedicated, _ := client.Dedicate()
		dedicated.Close()
	}
	return true
}

// A lateContext is a context whose deadline is over, though it does not say so yet. The client
// writes nothing under it. Only in order to make a connection, or to wait for one, the client
// derives contexts from it.
type lateContext struct {
	context.Context
	used atomic.Bool // the client has made a connection, or waited: none rested
}

func (c *lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func (c *lateContext) Value(key any) any {
	c.used.Store(true)
	return c.Context.Value(key)
}

// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// patience bounds what comes without a deadline.
const patience = 10 * time.Second

// send sends the commands to one server, each once, in one flush, and returns their replies.
func send(ctx context.Context, client valkey.Client, commands []store.Command) []store.Reply {
	if err := over(ctx); err != nil {
		return unsent(len(commands), err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if len(commands) == 1 {
		only, err := build(client, commands[0])
		if err != nil {
			return unsent(1, err)
		}
		return []store.Reply{answer(client.Do(ctx, only))}
	}
	built := make([]valkey.Completed, len(commands))
	for i, command := range commands {
		var err error
		if built[i], err = build(client, command); err != nil {
			return unsent(len(commands), err)
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

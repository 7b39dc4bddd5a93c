package rueidisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// patience bounds what comes without a deadline.
const patience = 10 * time.Second

// send sends the requests to one server, each once, in one flush, and returns their replies.
//
//nolint:gocyclo // each outcome of a request
func send(ctx context.Context, client rueidis.Client, reqs []store.Request) []store.Reply {
	replies := make([]store.Reply, len(reqs))
	if len(reqs) == 0 {
		return replies
	}
	if err := over(ctx); err != nil {
		return unsent(replies, err)
	}
	replicas, timeout := confirmations(reqs)
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience+time.Duration(timeout)*time.Millisecond)
		defer cancel()
	}
	if len(reqs) == 1 && replicas == 0 {
		only, err := command(client, reqs[0].Args)
		if err != nil {
			return unsent(replies, err)
		}
		replies[0] = answer(client.Do(ctx, only))
		return replies
	}
	commands := make([]rueidis.Completed, 0, len(reqs)+1)
	for i := range reqs {
		next, err := command(client, reqs[i].Args)
		if err != nil {
			return unsent(replies, err)
		}
		commands = append(commands, next)
	}
	if replicas > 0 {
		wait, _ := command(client, []any{"WAIT", replicas, timeout})
		commands = append(commands, wait)
	}
	results := client.DoMulti(ctx, commands...)
	var confirmed int64
	var waited error
	if replicas > 0 {
		confirmed, waited = results[len(reqs)].ToInt64()
	}
	for i := range replies {
		replies[i] = answer(results[i])
		switch {
		case reqs[i].Replicas <= 0 || replies[i].Err != nil || replies[i].Refused != "":
		case waited != nil && hasPrefix(waited.Error(), "NOPERM"): // carried out, and nobody may ask whether by others
			replies[i] = store.Reply{Err: waited}
		default:
			replies[i].Replicas = int(confirmed)
		}
	}
	return replies
}

// confirmations is what one WAIT behind all requests must ask for, none: 0. It counts the replicas
// that have everything written on its connection, so that a single one at the end holds for all.
func confirmations(reqs []store.Request) (replicas int, timeout int64) {
	for i := range reqs {
		if reqs[i].Replicas > 0 {
			replicas, timeout = max(replicas, reqs[i].Replicas), max(timeout, reqs[i].ReplicasTimeout, 1) // 0 is for ever
		}
	}
	return replicas, timeout
}

// over tells that ctx has ended, also when its timer has not noticed.
func over(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

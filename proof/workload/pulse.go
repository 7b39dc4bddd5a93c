package workload

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/proof/history"
)

// A pulse beats so often, and what is missed of it is written down when it is longer than a hiccup:
// some of those, in a worker, here and at the server, and the shortest requests get no answer in
// their time.
const (
	beat   = 5 * time.Millisecond
	hiccup = 10 * time.Millisecond
)

// recordStalls writes down when this process stood still by itself, until ctx is over: what it was
// granted meanwhile, and what was answered to it, came late, and no lock is to blame. ask is
// something that it does at each beat, nil for nothing; proc is what stood still if that takes
// long, empty for this process.
func recordStalls(ctx context.Context, rec *history.Recorder, proc string, ask func()) {
	for last := history.Now(); ; {
		pause(beat, ctx.Done())
		if ask != nil {
			ask()
		}
		now := history.Now()
		if long := now - last; long > int64(beat+hiccup) {
			rec.Put(history.Record{At: last, Proc: proc, Event: history.Stall, Limit: long})
		}
		if last = now; ctx.Err() != nil {
			return
		}
	}
}

// recordServerStalls writes down when the server, or this process, which stands between it and all
// workers, stood still.
func (r *Run) recordServerStalls(ctx context.Context) error {
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr})
	recordStalls(ctx, r.parent, history.Server, func() { _ = rdb.Ping(context.WithoutCancel(ctx)).Err() })
	return rdb.Close()
}

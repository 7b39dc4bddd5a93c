package workload

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/proof/history"
)

// A Server is what a run can do to the server.
type Server interface {
	Stop()                       // Stop freezes it.
	Continue()                   // Continue lets it go on.
	Do(args ...any) (any, error) // Do sends it one command.
}

// troubleServer freezes the server now and then, and cuts all connections to it, until end.
func (r *Run) troubleServer(ctx context.Context, end time.Time) {
	d := newDice(r.Seed, 1<<32)
	for {
		pause(d.Between(300*time.Millisecond, 1500*time.Millisecond), ctx.Done())
		left := time.Until(end) - quiet
		if ctx.Err() != nil || left <= 0 {
			return
		}
		if d.Percent(50) {
			// Answers are lost, and subscriptions have gaps. SKIPME spares the connection that
			// asks, no other.
			r.parent.Put(history.Record{Event: history.Kill, Proc: history.Server, Text: "connections"})
			_, _ = r.Server.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			_, _ = r.Server.Do("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes")
			r.addCounts(func(c *Counts) { c.Cuts++ })
			continue
		}
		r.parent.Put(history.Record{Event: history.Stop, Proc: history.Server})
		r.Server.Stop()
		long := d.Between(20*time.Millisecond, ttls[0]/2)
		if d.Percent(40) {
			long = d.Between(ttls[0], longestTTL+longestTTL/4)
		}
		pause(min(left, long), ctx.Done())
		r.Server.Continue()
		r.parent.Put(history.Record{Event: history.Cont, Proc: history.Server})
		r.addCounts(func(c *Counts) { c.Freezes++ })
	}
}

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

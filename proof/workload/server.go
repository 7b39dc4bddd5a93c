package workload

import (
	"context"
	"time"

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

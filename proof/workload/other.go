package workload

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// do runs something under a mutex, which it enters to learn of its lease.
func (a *actor) do(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	around := history.Record{Op: a.rec.NextOp(), Kind: history.Do, Type: history.Mutex, Name: name}
	a.call(around, 0, "")
	err := a.client.Mutex(name, holdfast.WithTTL(ttls[0])).Do(ctx, func(ctx context.Context) error {
		w := a.want(history.Mutex, []string{name})
		w.record.Kind, w.take = history.TryLock, a.client.Mutex(name).TryLock
		w.hold.fixed, w.hold.owner, w.record.Owner, w.record.Min, w.record.Queues = false, "", "", 0, false
		if h := a.acquire(ctx, w, nil); h != nil {
			a.touch(h)
			a.keep(h, a.dice.short(0, 30*time.Millisecond))
			a.touch(h)
			a.release(h)
		}
		return nil
	})
	a.back(around, err)
}

// resize changes how many permits a semaphore has.
func (a *actor) resize(name string) {
	permits := 2 + a.dice.Int64N(mostPermits-1)
	record := history.Record{Op: a.rec.NextOp(), Kind: history.Resize, Type: history.Semaphore, Name: name, Weight: permits}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	a.call(record, time.Second, "")
	err := a.client.Semaphore(name, a.size(name)).Resize(ctx, permits)
	a.back(record, err)
	if err == nil {
		a.permits[name] = permits
	}
}

// leader asks who leads.
func (a *actor) leader(name string) {
	record := history.Record{Op: a.rec.NextOp(), Kind: history.Leader, Type: history.Election, Name: name}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	a.call(record, time.Second, "")
	leader, err := a.client.Election(name).Leader(ctx)
	record.Token = leader.Token
	a.back(record, err)
}

// latch does one of the things that can be done with a latch.
func (a *actor) latch(name string) {
	latch := a.client.Latch(name, holdfast.WithTTL(a.latchTTL))
	record := history.Record{Op: a.rec.NextOp(), Type: history.Latch, Name: name, TTL: int64(a.latchTTL)}
	limit := time.Second
	var act func(context.Context) error
	switch roll := a.dice.IntN(100); {
	case roll < 20:
		record.Kind, record.Weight = history.Set, a.dice.Int64N(6)
		act = func(ctx context.Context) error { return latch.Set(ctx, int(record.Weight)) }
	case roll < 60:
		record.Kind, act = history.CountDown, latch.CountDown
	case roll < 80:
		record.Kind = history.Count
		act = func(ctx context.Context) error {
			n, err := latch.Count(ctx)
			record.Weight = int64(n)
			return err
		}
	default:
		record.Kind, act = history.Wait, latch.Wait
		limit = a.dice.short(10*time.Millisecond, longestWait)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	a.call(record, limit, "")
	err := act(ctx)
	a.back(record, err)
}

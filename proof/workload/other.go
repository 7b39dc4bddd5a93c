package workload

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// runDo runs something under a mutex, which it enters to learn of its lease.
func (a *actor) runDo(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	act := func(ctx context.Context) error {
		w := a.drawWant(history.Mutex, []string{name})
		w.record.Kind, w.take = history.TryLock, a.client.Mutex(name).TryLock
		w.hold.fixed, w.record.Owner, w.record.Min, w.record.Queues = false, "", 0, false
		if h := a.acquire(ctx, w, nil); h != nil {
			a.useResource(h)
			_ = h.Keep(a.dice.Short(0, 30*time.Millisecond))
			a.useResource(h)
			_ = h.GiveBack(longestTTL)
		}
		return nil
	}
	around := history.Record{Kind: history.Do, Type: history.Mutex, Name: name}
	_ = a.rec.Run(around, 0, func(*history.Record) error {
		return a.client.Mutex(name, holdfast.WithTTL(ttls[0])).Do(ctx, act)
	})
}

// askLeader asks who leads.
func (a *actor) askLeader(name string) {
	record := history.Record{Kind: history.Leader, Type: history.Election, Name: name}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = a.rec.Run(record, time.Second, func(back *history.Record) error {
		leader, err := a.client.Election(name).Leader(ctx)
		back.Token = leader.Token
		return err
	})
}

// useLatch does one of the things that can be done with a latch.
func (a *actor) useLatch(name string) {
	latch := a.client.Latch(name, holdfast.WithTTL(longestTTL))
	record := history.Record{Type: history.Latch, Name: name, TTL: int64(longestTTL)}
	limit := time.Second
	act := func(ctx context.Context, back *history.Record) error {
		n, err := latch.Count(ctx)
		back.Weight = int64(n)
		return err
	}
	switch roll := a.dice.IntN(100); {
	case roll < 20:
		record.Kind, record.Weight = history.Set, a.dice.Int64N(6)
		act = func(ctx context.Context, _ *history.Record) error { return latch.Set(ctx, int(record.Weight)) }
	case roll < 60:
		record.Kind = history.CountDown
		act = func(ctx context.Context, _ *history.Record) error { return latch.CountDown(ctx) }
	case roll < 80:
		record.Kind = history.Count
	default:
		record.Kind = history.Wait
		act = func(ctx context.Context, _ *history.Record) error { return latch.Wait(ctx) }
		limit = a.dice.Short(10*time.Millisecond, longestWait)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = a.rec.Run(record, limit, func(back *history.Record) error { return act(ctx, back) })
}

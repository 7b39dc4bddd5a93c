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
	around := history.Record{Op: a.rec.NextOp(), Kind: history.Do, Type: history.Mutex, Name: name}
	a.recordCall(around, 0, "")
	err := a.client.Mutex(name, holdfast.WithTTL(ttls[0])).Do(ctx, func(ctx context.Context) error {
		w := a.drawWant(history.Mutex, []string{name})
		w.record.Kind, w.take = history.TryLock, a.client.Mutex(name).TryLock
		w.hold.fixed, w.hold.owner, w.record.Owner, w.record.Min, w.record.Queues = false, "", "", 0, false
		if h := a.acquire(ctx, w, nil); h != nil {
			a.useResource(h)
			a.keepLease(h, a.dice.Short(0, 30*time.Millisecond))
			a.useResource(h)
			a.release(h)
		}
		return nil
	})
	a.recordReturn(around, err)
}

// resize changes how many permits a semaphore has.
func (a *actor) resize(name string) {
	permits := 2 + a.dice.Int64N(mostPermits-1)
	record := history.Record{Op: a.rec.NextOp(), Kind: history.Resize, Type: history.Semaphore, Name: name,
		Weight: permits}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	a.recordCall(record, time.Second, "")
	err := a.client.Semaphore(name, a.knownPermits(name)).Resize(ctx, permits)
	a.recordReturn(record, err)
	if err == nil {
		a.permits[name] = permits
	}
}

// askLeader asks who leads.
func (a *actor) askLeader(name string) {
	record := history.Record{Op: a.rec.NextOp(), Kind: history.Leader, Type: history.Election, Name: name}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	a.recordCall(record, time.Second, "")
	leader, err := a.client.Election(name).Leader(ctx)
	record.Token = leader.Token
	a.recordReturn(record, err)
}

// useLatch does one of the things that can be done with a latch.
func (a *actor) useLatch(name string) {
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
		limit = a.dice.Short(10*time.Millisecond, longestWait)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	a.recordCall(record, limit, "")
	err := act(ctx)
	a.recordReturn(record, err)
}

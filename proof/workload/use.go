package workload

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/proof/history"
)

// useLease holds the lease in a way the dice choose, and gives it back, or does not. depth is how
// often it may enter again.
func (a *actor) useLease(h *hold, depth int) {
	a.useResource(h)
	a.downgrade(h)
	inner := a.workUnder(h, depth)
	if a.err != nil {
		return
	}
	if inner != nil && a.dice.Percent(70) {
		a.useLease(inner, depth-1)
		inner = nil
	}
	a.useResource(h)
	if h.fixed && a.dice.Percent(5) {
		return // its TTL ends it
	}
	_ = h.GiveBack(longestTTL)
	if inner != nil {
		a.useLease(inner, depth-1) // an entry outlasts the lease that it entered
	}
	if a.dice.Percent(5) {
		_ = h.GiveBack(longestTTL)
	}
}

// workUnder keeps the lease for a while, or enters it: then there is an inner one.
func (a *actor) workUnder(h *hold, depth int) (inner *hold) {
	switch roll := a.dice.IntN(100); {
	case roll < 60:
		_ = h.Keep(a.dice.Short(0, 15*time.Millisecond))
	case roll < 76:
		if depth > 0 {
			return a.enterHold(h)
		}
	case roll < 85:
		a.checkLease(h)
		_ = h.Keep(a.dice.Short(0, 15*time.Millisecond))
	case roll < 98:
		_ = h.Keep(a.dice.Between(5*time.Millisecond, 60*time.Millisecond))
	default:
		// Longer than its TTL: a renewed lease lives on, a fixed one ends, and is released late.
		// Some hold so long, and out of reach of the server, that it lets others in.
		if !h.fixed && a.dice.Percent(60) {
			if a.err = a.storage.askSilence(a.slot, a.dice.Between(h.ttl+h.ttl/4, 2*h.ttl)); a.err != nil {
				return nil
			}
		}
		_ = h.Keep(a.dice.Between(h.ttl+h.ttl/2, 3*h.ttl))
	}
	return nil
}

// enterHold takes again what is held: all, or of a group one.
func (a *actor) enterHold(h *hold) *hold {
	typ, names := h.About.Type, h.About.Names
	switch {
	case typ != history.Group && typ != history.Semaphore:
		names = []string{h.About.Name}
	case typ == history.Semaphore:
		return nil // it is not entered: one would wait for oneself
	case typ == history.Group && a.dice.Percent(50):
		typ, names = history.Mutex, names[:1]
	}
	return a.acquire(leased.Context(h.Lease.Lease), a.drawWant(typ, names), h)
}

// downgrade makes a lease that writes one that reads, half the time, and goes on with it for a
// while.
func (a *actor) downgrade(h *hold) {
	if h.About.Type != history.ReadWrite || h.shares || a.dice.Percent(50) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestTTL)
	defer cancel()
	err := h.Run(history.Downgrade, longestTTL, func() error { return h.Downgrade(ctx) })
	h.shares = err == nil || errors.Is(err, holdfast.ErrUncertain)
	a.useResource(h)
	_ = h.Keep(a.dice.Short(0, 30*time.Millisecond))
	a.useResource(h)
}

// checkLease asks the server about the lease, half the time.
func (a *actor) checkLease(h *hold) {
	if a.dice.Percent(50) {
		return
	}
	_ = h.Run(history.Confirm, longestTTL, func() error { return h.Check(context.Background()) })
	_ = h.RecordTrust()
}

// useResource uses the resource of each name that the lease is for: as a holder would that reads,
// thinks and writes, or that only reads, and relies on what was read.
func (a *actor) useResource(h *hold) {
	if h.About.Type == history.Semaphore {
		return // several hold it: a token keeps nobody out
	}
	for name, token := range h.Tokens() {
		if a.err != nil {
			return
		}
		a.use(h, name, token)
	}
}

// use adds one to the resource of a name. A lease that reads compares what it reads with what it
// read before.
func (a *actor) use(h *hold, name string, token int64) {
	record := h.About
	if record.Kind = history.Write; h.shares {
		record.Kind = history.Read
	}
	record.Name, record.Names, record.Token = name, nil, token
	a.err = a.rec.Run(record, 0, func(back *history.Record) error {
		value, ok, err := a.storage.read(name, token, h.shares)
		before, again := h.seen[name]
		switch {
		case err != nil: // the parent is gone, and with it the run
		case !ok:
			back.Result = history.Refused
		case !h.shares:
			back.Result, err = a.storage.write(name, token, value+1)
		case again && before != value:
			back.Result = history.Changed
		case h.seen == nil:
			h.seen = map[string]int64{name: value}
		}
		return err
	})
}

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

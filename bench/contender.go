package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

// ttl is the lease time that every contender asks for.
const ttl = 15 * time.Second

// A lockFunc waits until name is held, and returns what gives it back.
type lockFunc func(ctx context.Context, name string) (unlock func() error, err error)

// A contender is one way to exclude others. It is used by many goroutines at once.
type contender struct {
	lock         lockFunc
	rlock, wlock lockFunc // for readers, and for writers; nil: not measured
	close        func() error

	// value returns when the value of a name is there. It calls make if nobody else makes it.
	value func(ctx context.Context, name string, make func()) error

	// seed makes name ready before anyone can lock it; nil: nothing is needed.
	seed func(ctx context.Context, name string) error
}

// A target says where a contender works, and how.
type target struct {
	Addr string
	Poll time.Duration // the interval of the contenders that poll
}

// An entry is a line of the table: a contender, and where it takes part.
type entry struct {
	name  string
	rows  []int    // in which it takes part, by their numbers
	sends []string // plain commands it sends, beyond scripts; see count
	open  func(target) (contender, error)

	// cancellable gives every operation its own context that can be cancelled, as a service does.
	cancellable bool

	waiters int    // of row 11: how many goroutines want the name
	work    work   // of each worker process, if it is not the row's
	steps   []step // of row 14, the last of which is measured
}

// entries has all contenders, the references first.
var entries = []entry{
	{name: "bare pair", rows: []int{1, 2, 3, 4, 5, 8}, sends: []string{"set"}, open: openBare},
	{name: "baton", rows: []int{4, 5}, sends: []string{"blpop", "rpush"}, open: openBaton},
	{name: "sync.Mutex", rows: []int{3}, open: openLocal},
	{name: "redislock", rows: []int{1, 2, 3, 4, 5, 8, 12}, open: openRedislock},
	{name: "redsync", rows: []int{1, 2, 3, 4, 5}, sends: []string{"set"}, open: openRedsync},
	{name: "rueidislock", rows: []int{1, 2, 3, 4, 5}, open: openRueidislock},
	{name: subject, rows: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12}, open: openHoldfast},
	{name: subject + ", ctx with cancel", rows: []int{1}, open: openHoldfast, cancellable: true},
	{name: subject + ", retained", rows: []int{1, 5, 8, 9, 10}, open: openRetained},
	{name: subject + ", retained and unused", rows: []int{10}, open: openRetained, work: leaveOrTakeUnused},
	{name: subject + ", history", rows: []int{6, 7}, sends: []string{"xadd"}, open: openWithHistory},
	{name: "2 in strict order", rows: []int{11}, open: openStrict, waiters: 2},
	{name: "20 in strict order", rows: []int{11}, open: openStrict, waiters: 20},
	{name: "200 in strict order", rows: []int{11}, open: openStrict, waiters: 200},
	{name: byHand, rows: []int{13}, open: openValuesByHand},
	{name: "rueidisaside", rows: []int{13}, open: openRueidisaside},
	{name: subject + ", flight", rows: []int{13}, open: openFlight},
	{name: "acquire", rows: []int{14}, open: openHoldfast, steps: []step{acquire}},
	{name: "release", rows: []int{14}, open: openHoldfast, steps: []step{acquire, giveBack}},
	{name: "acquire that queues", rows: []int{14}, open: openHoldfast, steps: []step{block, join}},
	{name: "hand-over, and its renewal", rows: []int{14}, open: openHoldfast, steps: []step{block, join, handOver}},
	{name: "recall, and what follows", rows: []int{14}, open: openRetained, steps: []step{retain, block}},
	{name: "5 s of waiting", rows: []int{14}, open: openHoldfast, steps: []step{block, join, live}},
	{name: "renewal", rows: []int{14}, open: openShort, steps: []step{acquire, renewAll}},
}

func (e entry) takesPart(row int) bool { return slices.Contains(e.rows, row) }

// prepare makes name ready to be locked.
func (c contender) prepare(ctx context.Context, name string) error {
	if c.seed == nil {
		return nil
	}
	return c.seed(ctx, name)
}

// pair locks and unlocks name once.
func (c contender) pair(ctx context.Context, name string) error {
	return c.lock.do(ctx, name, func() {})
}

// do locks name, calls f, and unlocks.
func (lock lockFunc) do(ctx context.Context, name string, f func()) error {
	unlock, err := lock(ctx, name)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	f()
	if err := unlock(); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// openHoldfast opens holdfast with its defaults: renewed, queued, with tokens.
func openHoldfast(t target) (contender, error) { return openConfig(t, holdfast.Config{TTL: ttl}) }

// openWithHistory opens holdfast as openHoldfast does, with a history.
func openWithHistory(t target) (contender, error) {
	return openConfig(t, holdfast.Config{TTL: ttl, History: 10_000})
}

// openShort opens holdfast with leases that are renewed soon.
func openShort(t target) (contender, error) { return openConfig(t, holdfast.Config{TTL: shortTTL}) }

// openRetained opens holdfast as openHoldfast does, with names that stay with their process.
func openRetained(t target) (contender, error) {
	return openConfig(t, holdfast.Config{TTL: ttl}, holdfast.WithRetain(10*time.Second))
}

// openStrict opens holdfast as openHoldfast does, with a place in the queue for each goroutine.
func openStrict(t target) (contender, error) {
	return openConfig(t, holdfast.Config{TTL: ttl}, holdfast.WithStrictOrder())
}

func openConfig(t target, config holdfast.Config, options ...holdfast.Option) (contender, error) {
	rdb := newRedis(t)
	client, err := holdfast.New(redisstore.New(rdb), &config)
	return contender{
		lock: func(ctx context.Context, name string) (func() error, error) {
			return unlocked(client.Mutex(name, options...).Lock(ctx))
		},
		rlock: func(ctx context.Context, name string) (func() error, error) {
			return unlocked(client.RWMutex(name, options...).RLock(ctx))
		},
		wlock: func(ctx context.Context, name string) (func() error, error) {
			return unlocked(client.RWMutex(name, options...).Lock(ctx))
		},
		close: func() error { return errors.Join(client.Close(), rdb.Close()) },
	}, err
}

// unlocked returns what gives a lease back.
func unlocked(lease *holdfast.Lease, err error) (func() error, error) {
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

// openRedislock opens github.com/bsm/redislock. It asks at an interval while the name is held.
func openRedislock(t target) (contender, error) {
	rdb := newRedis(t)
	locker := redislock.New(rdb)
	lock := func(ctx context.Context, name string) (func() error, error) {
		lock, err := locker.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(t.Poll)})
		return func() error { return lock.Release(ctx) }, err
	}
	return contender{lock: lock, close: rdb.Close}, nil
}

// openRedsync opens github.com/go-redsync/redsync on its smallest quorum, one server. It asks at an
// interval while the name is held, and takes back what it may have won after each refusal.
func openRedsync(t target) (contender, error) {
	rdb := newRedis(t)
	rs := redsync.New(goredis.NewPool(rdb))
	lock := func(ctx context.Context, name string) (func() error, error) {
		mu := rs.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithRetryDelay(t.Poll),
			redsync.WithTries(math.MaxInt))
		return func() error {
			held, err := mu.UnlockContext(ctx)
			return stillHeld(name, held, err)
		}, mu.LockContext(ctx)
	}
	return contender{lock: lock, close: rdb.Close}, nil
}

// openRueidislock opens github.com/redis/rueidis/rueidislock on one key instead of its default of
// three. It waits for the server's word that the key has changed, which all waiters get at once.
func openRueidislock(t target) (contender, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{t.Addr}},
		KeyMajority:  1,
		KeyValidity:  ttl,
		// With the default of 20 ms, an attempt that times out on a busy machine may wait for ever.
		TryNextAfter: time.Second,
		// It is faster, and its documentation asks for it from Redis 7.0.5 on.
		NoLoopTracking: true,
	})
	lock := func(ctx context.Context, name string) (func() error, error) {
		_, cancel, err := locker.WithContext(ctx, name)
		return func() error {
			cancel()
			return nil
		}, err
	}
	closeLocker := func() error {
		locker.Close()
		return nil
	}
	return contender{lock: lock, close: closeLocker}, err
}

// newRedis returns the go-redis client that all contenders on go-redis get, each its own, with the
// options as most programs leave them: the pool, too, has its default size.
func newRedis(t target) *redis.Client { return redis.NewClient(&redis.Options{Addr: t.Addr}) }

// openBare opens the least that a lock can cost on go-redis: one plain command each way. It has no
// renewal, no queue and no token, and it polls while the name is held.
func openBare(t target) (contender, error) {
	rdb := newRedis(t)
	release := redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`)
	lock := func(ctx context.Context, name string) (func() error, error) {
		value := rand.Text()
		for {
			err := rdb.SetArgs(ctx, name, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
			if err == nil {
				break
			}
			if !errors.Is(err, redis.Nil) {
				return nil, err
			}
			time.Sleep(t.Poll)
		}
		return func() error {
			n, err := release.Run(ctx, rdb, []string{name}, value).Int()
			return stillHeld(name, n == 1, err)
		}, nil
	}
	return contender{lock: lock, close: rdb.Close}, nil
}

// stillHeld returns the error of an unlock.
func stillHeld(name string, held bool, err error) error {
	if err == nil && !held {
		err = fmt.Errorf("%s was not held any more", name)
	}
	return err
}

// openBaton opens what passes one element of a list on. It is no lock, because the element dies
// with whoever holds it, but a bound: two commands a hand-over, in order, and the server itself
// wakes the next.
func openBaton(t target) (contender, error) {
	rdb := newRedis(t)
	pass := func(ctx context.Context, name string) error { return rdb.RPush(ctx, name, "baton").Err() }
	lock := func(ctx context.Context, name string) (func() error, error) {
		err := rdb.BLPop(ctx, 0, name).Err()
		return func() error { return pass(ctx, name) }, err
	}
	return contender{lock: lock, close: rdb.Close, seed: pass}, nil
}

// openLocal opens a sync.Mutex: what excluding goroutines costs if no other process has to be
// asked. It ignores names, so it takes part only where there is one.
func openLocal(target) (contender, error) {
	var mu sync.Mutex
	unlock := func() error {
		mu.Unlock()
		return nil
	}
	lock := func(context.Context, string) (func() error, error) {
		mu.Lock()
		return unlock, nil
	}
	return contender{lock: lock, close: func() error { return nil }}, nil
}

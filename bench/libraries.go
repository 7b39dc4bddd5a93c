package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

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
	sync := redsync.New(goredis.NewPool(rdb))
	lock := func(ctx context.Context, name string) (func() error, error) {
		mu := sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithRetryDelay(t.Poll),
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

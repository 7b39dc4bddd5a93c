package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// polling is github.com/bsm/redislock. It asks at an interval while the name is held.
type polling struct {
	rdb    *redis.Client
	locker *redislock.Client
	poll   time.Duration
}

func openRedislock(t target) (Contender, error) {
	rdb := newRedis(t)
	return &polling{rdb, redislock.New(rdb), t.poll}, nil
}

func (p *polling) Lock(ctx context.Context, name string) (func() error, error) {
	lock, err := p.locker.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(p.poll)})
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Release(ctx) }, nil
}

func (p *polling) Close() error { return p.rdb.Close() }

// quorum is github.com/go-redsync/redsync on its smallest quorum, one server. It asks at an
// interval while the name is held, and takes back what it may have won after each refusal.
type quorum struct {
	rdb  *redis.Client
	sync *redsync.Redsync
	poll time.Duration
}

func openRedsync(t target) (Contender, error) {
	rdb := newRedis(t)
	return &quorum{rdb, redsync.New(goredis.NewPool(rdb)), t.poll}, nil
}

func (q *quorum) Lock(ctx context.Context, name string) (func() error, error) {
	mu := q.sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithRetryDelay(q.poll), redsync.WithTries(math.MaxInt))
	if err := mu.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		ok, err := mu.UnlockContext(ctx)
		if err == nil && !ok {
			err = fmt.Errorf("%s was not held any more", name)
		}
		return err
	}, nil
}

func (q *quorum) Close() error { return q.rdb.Close() }

// tracking is github.com/redis/rueidis/rueidislock on one key instead of its default of three. It
// waits for the server's word that the key has changed, which all waiters get at once.
type tracking struct{ locker rueidislock.Locker }

func openRueidislock(t target) (Contender, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{t.addr}},
		KeyMajority:  1,
		KeyValidity:  ttl,
		// With the default of 20 ms, an attempt that times out on a busy machine may wait for ever.
		TryNextAfter: time.Second,
		// It is faster, and its documentation asks for that version.
		NoLoopTracking: atLeast(t.version, 7, 0, 5),
	})
	if err != nil {
		return nil, err
	}
	return tracking{locker}, nil
}

func (t tracking) Lock(ctx context.Context, name string) (func() error, error) {
	_, cancel, err := t.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error {
		cancel()
		return nil
	}, nil
}

func (t tracking) Close() error {
	t.locker.Close()
	return nil
}

package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
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

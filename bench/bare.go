package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// bare is the least that a lock can cost on go-redis: one plain command each way. It has no
// renewal, no queue and no token, and it polls while the name is held.
type bare struct {
	rdb     *redis.Client
	release *redis.Script
	poll    time.Duration
}

func openBare(t target) (Contender, error) {
	return &bare{
		rdb: newRedis(t),
		release: redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`),
		poll: t.poll,
	}, nil
}

// newRedis returns the go-redis client that all contenders on go-redis get, each its own, with the
// options as most programs leave them: the pool, too, has its default size.
func newRedis(t target) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: t.addr})
}

func (b *bare) Lock(ctx context.Context, name string) (func() error, error) {
	value := rand.Text()
	for {
		err := b.rdb.SetArgs(ctx, name, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if err == nil {
			return func() error { return b.unlock(ctx, name, value) }, nil
		}
		if !errors.Is(err, redis.Nil) {
			return nil, err
		}
		time.Sleep(b.poll)
	}
}

func (b *bare) unlock(ctx context.Context, name, value string) error {
	n, err := b.release.Run(ctx, b.rdb, []string{name}, value).Int()
	if err == nil && n != 1 {
		err = fmt.Errorf("%s was not held any more", name)
	}
	return err
}

func (b *bare) Close() error { return b.rdb.Close() }

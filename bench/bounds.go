package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
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

// baton passes one element of a list on. It is no lock, because the element dies with whoever holds
// it, but a bound: two commands a hand-over, in order, and the server itself wakes the next.
type baton struct{ rdb *redis.Client }

func openBaton(t target) (Contender, error) { return baton{newRedis(t)}, nil }

// Seed makes the one element.
func (b baton) Seed(ctx context.Context, name string) error {
	return b.rdb.RPush(ctx, name, "baton").Err()
}

func (b baton) Lock(ctx context.Context, name string) (func() error, error) {
	if err := b.rdb.BLPop(ctx, 0, name).Err(); err != nil {
		return nil, err
	}
	return func() error { return b.rdb.RPush(ctx, name, "baton").Err() }, nil
}

func (b baton) Close() error { return b.rdb.Close() }

// local is a sync.Mutex: what excluding goroutines costs if no other process has to be asked. It
// ignores names, so it takes part only where there is one.
type local struct{ mu sync.Mutex }

func openLocal(target) (Contender, error) { return new(local), nil }

func (l *local) Lock(context.Context, string) (func() error, error) {
	l.mu.Lock()
	return l.unlock, nil
}

func (l *local) unlock() error {
	l.mu.Unlock()
	return nil
}

func (l *local) Close() error { return nil }

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

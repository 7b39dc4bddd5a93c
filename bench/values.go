package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/flight"
	"github.com/holdfast-go/holdfast/redisstore"
)

const (
	hosts      = 16                   // of row 13
	makingTime = 5 * time.Millisecond // of a value of row 13
	byHand     = "by hand on redislock"
)

// runValues runs row 13: hosts want one value after another, each of which one of them makes.
func runValues(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	var all []contender
	for range hosts {
		c, err := e.open(b.target)
		if err != nil {
			return sample{}, err
		}
		defer func() { _ = c.close() }()
		all = append(all, c)
	}
	var violations int64
	s, err := b.repeat(e, func(number int) (time.Duration, error) {
		took, twice, err := wantValue(ctx, all, fmt.Sprintf("bench:13:%s:%d:%d", e.name, run, number))
		violations += twice
		return took, err
	})
	s.violations = violations
	return s, err
}

// wantValue has all hosts want one value. It returns the time from the making of the value until
// all have it, and how often it was made beside another making.
func wantValue(ctx context.Context, all []contender, name string) (took time.Duration, violations int64, err error) {
	var made, making, twice atomic.Int64
	makeValue := func() {
		if making.Add(1) > 1 {
			twice.Add(1)
		}
		time.Sleep(makingTime)
		made.Store(time.Now().UnixNano())
		making.Add(-1)
	}
	var done sync.WaitGroup
	errs := make([]error, len(all))
	for i, c := range all {
		done.Go(func() { errs[i] = c.value(ctx, name, makeValue) })
	}
	done.Wait()
	return time.Duration(time.Now().UnixNano() - made.Load()), twice.Load(), errors.Join(errs...)
}

// openFlight opens package flight over values in the same server.
func openFlight(t target) (contender, error) {
	rdb := newRedis(t)
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{TTL: ttl})
	return contender{
		value: func(ctx context.Context, name string, make func()) error {
			_, err := flight.Do(ctx, client, name, func(ctx context.Context) (string, flight.State, error) {
				text, err := rdb.Get(ctx, name).Result()
				if errors.Is(err, redis.Nil) {
					return "", flight.Stale, nil
				}
				return text, flight.Fresh, err
			}, func(ctx context.Context, _ int64) (string, error) {
				make()
				return "value", rdb.Set(ctx, name, "value", ttl).Err()
			})
			return err
		},
		close: func() error { return errors.Join(client.Close(), rdb.Close()) },
	}, err
}

// openValuesByHand is what projects write: a look, a lock of redislock, and a look again.
func openValuesByHand(t target) (contender, error) {
	rdb := newRedis(t)
	locker := redislock.New(rdb)
	found := func(ctx context.Context, name string) (bool, error) {
		err := rdb.Get(ctx, name).Err()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil, err
	}
	value := func(ctx context.Context, name string, make func()) error {
		if there, err := found(ctx, name); there || err != nil {
			return err
		}
		lock, err := locker.Obtain(ctx, "lock:"+name, ttl,
			&redislock.Options{RetryStrategy: redislock.LinearBackoff(t.Poll)})
		if err != nil {
			return err
		}
		there, err := found(ctx, name)
		if !there && err == nil {
			make()
			err = rdb.Set(ctx, name, "value", ttl).Err()
		}
		return errors.Join(err, lock.Release(ctx))
	}
	return contender{value: value, close: rdb.Close}, nil
}

// openRueidisaside opens github.com/redis/rueidis/rueidisaside. It waits for the server's word that
// the value has changed, and keeps values in the client.
func openRueidisaside(t target) (contender, error) {
	client, err := rueidisaside.NewClient(rueidisaside.ClientOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{t.Addr}}})
	if err != nil {
		return contender{}, err
	}
	return contender{
		value: func(ctx context.Context, name string, make func()) error {
			_, err := client.Get(ctx, ttl, name, func(context.Context, string) (string, error) {
				make()
				return "value", nil
			})
			return err
		},
		close: func() error { client.Close(); return nil },
	}, nil
}

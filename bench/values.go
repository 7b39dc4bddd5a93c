package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	hosts  = 16                   // of row 13
	making = 5 * time.Millisecond // a value of row 13
	byHand = "by hand on redislock"
)

// runValues runs row 13: hosts want one value after another, each of which one of them makes.
func runValues(ctx context.Context, b *bench, e entry, run int) (s sample, err error) {
	var all []contender
	for range hosts {
		c, err := e.open(b.target)
		if err != nil {
			return sample{}, err
		}
		defer func() { _ = c.close() }()
		all = append(all, c)
	}
	var times []time.Duration
	round := func(number int) error {
		var made, now atomic.Int64
		var done sync.WaitGroup
		failed := make(chan error, hosts)
		for _, c := range all {
			done.Go(func() {
				failed <- c.value(ctx, fmt.Sprintf("bench:13:%s:%d:%d", e.name, run, number), func() {
					if now.Add(1) > 1 {
						s.violations++
					}
					time.Sleep(making)
					made.Store(time.Now().UnixNano())
					now.Add(-1)
				})
			})
		}
		done.Wait()
		times = append(times, time.Duration(time.Now().UnixNano()-made.Load()))
		close(failed)
		for err := range failed {
			if err != nil {
				return err
			}
		}
		return nil
	}
	number := 0
	loop := func(d time.Duration) error {
		times = times[:0]
		for end := time.Now().Add(d); time.Now().Before(end); number++ {
			if err := round(number); err != nil {
				return err
			}
		}
		return nil
	}
	err0 := loop(b.warmup)
	before, err1 := b.spent(e)
	err2 := loop(b.seconds)
	after, err3 := b.spent(e)
	slices.Sort(times)
	s.p50, s.p99 = percentile(times, 0.5), percentile(times, 0.99)
	after.since(before).share(&s, int64(len(times)))
	return s, errors.Join(err0, err1, err2, err3)
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

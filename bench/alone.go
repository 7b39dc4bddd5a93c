package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// runAlone runs row 1: one goroutine locks and unlocks a name that nobody else wants.
func runAlone(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, err
	}
	defer c.Close()
	name := fmt.Sprintf("bench:1:%s:%d", e.name, run)
	times := make([]time.Duration, 0, 1<<16)
	loop := func(d time.Duration) error {
		times = times[:0]
		for end := time.Now().Add(d); ; {
			start := time.Now()
			if start.After(end) {
				return nil
			}
			if err := pair(ctx, c, name, e.cancellable); err != nil {
				return err
			}
			times = append(times, time.Since(start))
		}
	}
	if err := loop(b.warmup); err != nil {
		return sample{}, err
	}
	before, err := b.sent(e)
	if err != nil {
		return sample{}, err
	}
	if err := loop(b.seconds); err != nil {
		return sample{}, err
	}
	after, err := b.sent(e)
	slices.Sort(times)
	return sample{
		p50:      percentile(times, 0.5),
		p99:      percentile(times, 0.99),
		commands: share(after-before, int64(len(times))),
	}, err
}

// pair locks and unlocks name once.
func pair(ctx context.Context, c Contender, name string, cancellable bool) error {
	if cancellable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	unlock, err := c.Lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}

// crowd is how many goroutines row 2 has.
const crowd = 64

// runCrowd runs row 2: many goroutines lock and unlock, each a name of its own.
func runCrowd(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, err
	}
	defer c.Close()
	var (
		done   [crowd]struct{ n, _, _, _, _, _, _, _ atomic.Int64 } // a cache line each
		over   atomic.Bool
		wg     sync.WaitGroup
		failed = make(chan error, crowd)
	)
	for i := range crowd {
		wg.Go(func() {
			name := fmt.Sprintf("bench:2:%s:%d:%d", e.name, run, i)
			for !over.Load() {
				if err := pair(ctx, c, name, e.cancellable); err != nil {
					failed <- err
					return
				}
				done[i].n.Add(1)
			}
		})
	}
	count := func() (pairs, commands int64, at time.Time, err error) {
		commands, err = b.sent(e)
		for i := range done {
			pairs += done[i].n.Load()
		}
		return pairs, commands, time.Now(), err
	}
	time.Sleep(b.warmup)
	pairs0, commands0, start, err0 := count()
	time.Sleep(b.seconds)
	pairs1, commands1, end, err1 := count()
	over.Store(true)
	home, err := gather(&wg, failed)
	return sample{
		rate:     float64(pairs1-pairs0) / end.Sub(start).Seconds(),
		commands: share(commands1-commands0, pairs1-pairs0),
		stuck:    !home,
	}, errors.Join(err, err0, err1)
}

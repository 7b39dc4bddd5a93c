package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	crowd = 64 // goroutines of row 2
	mates = 16 // goroutines of row 3
)

// runAlone runs row 1: one goroutine locks and unlocks a name that nobody else wants.
func runAlone(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = c.close() }()
	name := fmt.Sprintf("bench:1:%s:%d", e.name, run)
	return b.repeat(e, func(int) (time.Duration, error) {
		start := time.Now()
		err := e.pair(ctx, c, name)
		return time.Since(start), err
	})
}

// repeat does one operation after the other, and measures after a warm-up. An operation gets a
// number of its own, and returns its time.
func (b *bench) repeat(e entry, do func(number int) (time.Duration, error)) (sample, error) {
	number, times := 0, make([]time.Duration, 0, 1<<16)
	loop := func(d time.Duration) error {
		times = times[:0]
		for end := time.Now().Add(d); time.Now().Before(end); number++ {
			took, err := do(number)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		return nil
	}
	err0 := loop(b.warmup)
	before, err1 := b.spent(e)
	err2 := loop(b.seconds)
	after, err3 := b.spent(e)
	slices.Sort(times)
	s := sample{p50: percentile(times, 0.5), p99: percentile(times, 0.99)}
	after.since(before).share(&s, int64(len(times)))
	return s, errors.Join(err0, err1, err2, err3)
}

// pair locks and unlocks name once.
func (e entry) pair(ctx context.Context, c contender, name string) error {
	if e.cancellable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	return c.pair(ctx, name)
}

// runCrowd runs row 2: many goroutines lock and unlock, each a name of its own.
func runCrowd(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	name := fmt.Sprintf("bench:2:%s:%d", e.name, run)
	return b.together(ctx, e, crowd, name, func(ctx context.Context, w worker) ([]time.Duration, error) {
		own := fmt.Sprintf("%s:%d", w.name, w.number)
		w.board.begin()
		for !w.board.over() {
			if err := e.pair(ctx, w.contender, own); err != nil {
				return nil, err
			}
			w.board.count(w.number)
		}
		return nil, nil
	})
}

// runMates runs row 3: the goroutines of one process want one name, without a pause.
func runMates(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	return b.together(ctx, e, mates, fmt.Sprintf("bench:3:%s:%d", e.name, run), contend)
}

// runQueue runs row 11: goroutines want one name, without a pause, each with a place of its own.
func runQueue(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	return b.together(ctx, e, e.waiters, fmt.Sprintf("bench:11:%s:%d", e.name, run), contend)
}

// together runs a row in n goroutines of this process. A goroutine that does not end in time is
// left behind.
func (b *bench) together(ctx context.Context, e entry, n int, name string, do work) (sample, error) {
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = c.close() }()
	on, failed, ended := new(board), make(chan error, n), make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, err := do(ctx, worker{contender: c, name: name, board: on, number: i}); err != nil {
				failed <- err
				on.phase.Store(over)
			}
		})
	}
	go func() {
		all.Wait()
		close(ended)
	}()
	s, err := b.watch(e, on, n)
	on.phase.Store(over)
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		s.stuck = true
	}
	select {
	case werr := <-failed:
		err = errors.Join(werr, err)
	default:
	}
	s.violations = on.violations.Load()
	return s, err
}

// watch lets n workers begin when all are ready, and measures after a warm-up. The workers still
// run afterwards.
func (b *bench) watch(e entry, on *board, n int) (sample, error) {
	for deadline := time.Now().Add(startTimeout); on.ready.Load() < int64(n); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || on.over() {
			return sample{}, fmt.Errorf("%d of %d workers were ready", on.ready.Load(), n)
		}
	}
	on.phase.CompareAndSwap(waiting, running)
	time.Sleep(b.warmup)
	spent0, err0 := b.spent(e)
	before := on.tally(n)
	time.Sleep(b.seconds)
	// Where the workers stood still all the while, there is nothing to tell yet.
	for deadline := time.Now().Add(startTimeout); on.entered.Load() < 2 && !on.over() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	spent1, err1 := b.spent(e)
	return on.tally(n).since(before, spent1.since(spent0)), errors.Join(err0, err1)
}

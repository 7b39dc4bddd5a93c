package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// mates is how many goroutines row 3 has.
const mates = 16

// runMates runs row 3: the goroutines of one process want one name, without a pause.
func runMates(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, err
	}
	defer c.Close()
	name := fmt.Sprintf("bench:3:%s:%d", e.name, run)
	if err := seed(ctx, c, name); err != nil {
		return sample{}, err
	}
	var (
		on     = new(board)
		wg     sync.WaitGroup
		failed = make(chan error, mates)
	)
	for i := range mates {
		wg.Go(func() {
			if err := contend(ctx, c, name, on, i); err != nil {
				failed <- err
				on.phase.Store(over)
			}
		})
	}
	s, err := b.watch(e, on, mates)
	on.phase.Store(over)
	home, werr := gather(&wg, failed)
	s.stuck = !home
	s.violations = on.violations.Load()
	return s, errors.Join(werr, err)
}

// gather waits until all goroutines are home, and returns what the first to fail sent to failed. A
// goroutine that does not come home in time is left behind.
func gather(wg *sync.WaitGroup, failed <-chan error) (home bool, err error) {
	all := make(chan struct{})
	go func() {
		wg.Wait()
		close(all)
	}()
	late := time.NewTimer(homecoming)
	defer late.Stop()
	select {
	case <-all:
		home = true
	case <-late.C:
	}
	select {
	case err = <-failed:
	default:
	}
	return home, err
}

// contend does what a worker of rows 3 and 4 does: lock, sign in, sign out, unlock, until it is
// over. It goes home only from inside, so that whoever still waits gets in after it and goes home
// too.
func contend(ctx context.Context, c Contender, name string, on *board, who int) error {
	on.begin(who)
	for !on.over() {
		on.ask(who)
		unlock, err := c.Lock(ctx, name)
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		on.enter(who)
		on.leave(who)
		if err := unlock(); err != nil {
			return fmt.Errorf("unlock: %w", err)
		}
	}
	return nil
}

// watch lets n workers begin when all are ready, and measures after a warm-up. The workers still
// run afterwards.
func (b *bench) watch(e entry, on *board, n int) (sample, error) {
	for deadline := time.Now().Add(patience); on.ready.Load() < int64(n); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || on.over() {
			return sample{}, fmt.Errorf("%d of %d workers were ready", on.ready.Load(), n)
		}
	}
	on.phase.CompareAndSwap(waiting, running)
	time.Sleep(b.warmup)
	sent0, err := b.sent(e)
	if err != nil {
		return sample{}, err
	}
	before := on.read(n)
	time.Sleep(b.seconds)
	// Where the workers stood still all the while, there is nothing to tell yet.
	for deadline := time.Now().Add(patience); on.handovers.Load() < 2 && !on.over() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	sent1, err := b.sent(e)
	d, took := on.read(n).since(before)
	return contended(d, took, sent1-sent0), err
}

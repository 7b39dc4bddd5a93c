package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// leases is how many row 12 holds at a time.
const leases = 10_000

// runHeld runs row 12: it holds many names at a time, and sees how much larger the heap is then.
func runHeld(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = c.close() }()
	names, unlocks := make([]string, leases), make([]func() error, leases)
	for i := range names {
		names[i] = fmt.Sprintf("bench:12:%s:%d:%d", e.name, run, i)
	}
	err0 := c.hold(ctx, names[:crowd], unlocks) // it makes connections
	err1 := release(unlocks[:crowd])
	clear(unlocks)
	bytes, objects := heap()
	err2 := c.hold(ctx, names, unlocks)
	bytesThen, objectsThen := heap()
	err3 := release(unlocks)
	return sample{
		bytes: share(bytesThen-bytes, leases), objects: share(objectsThen-objects, leases),
	}, errors.Join(err0, err1, err2, err3)
}

// hold locks names, many at a time, and keeps what gives each back.
func (c contender) hold(ctx context.Context, names []string, unlocks []func() error) error {
	return each(len(names), func(i int) (err error) {
		unlocks[i], err = c.lock(ctx, names[i])
		return err
	})
}

// release gives back what is held, many names at a time.
func release(unlocks []func() error) error {
	return each(len(unlocks), func(i int) error { return unlocks[i]() })
}

// each calls do for each number below n, in as many goroutines as row 2 has.
func each(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, crowd)
	for who := range crowd {
		all.Go(func() {
			for i := who; i < n && errs[who] == nil; i += crowd {
				errs[who] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// heap returns how much is in use on the heap.
func heap() (bytes, objects int64) {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has finalized
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc), int64(memory.HeapObjects)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// requests is how many names row 14 has.
const requests = 1000

// shortTTL is the TTL of the leases whose renewals row 14 counts.
const shortTTL = 3 * time.Second

// runRequest runs row 14: it does one thing for each of many names, and looks at the server.
func runRequest(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	c, err1 := e.open(b.target)
	other, err2 := openHoldfast(b.target)
	if err := errors.Join(err1, err2); err != nil {
		return sample{}, err
	}
	r := requestRun{c: c, other: other, b: b, e: e, names: make([]string, requests)}
	for i := range r.names {
		r.names[i] = fmt.Sprintf("bench:14:%s:%d:%d", e.name, run, i)
	}
	r.unlocks, r.others = make([]func() error, requests), make([]func() error, requests)
	err := errors.Join(c.warm(ctx, r.names), other.warm(ctx, r.names), listen(ctx, &r))
	last := len(e.steps) - 1
	for _, step := range e.steps[:last] {
		err = errors.Join(err, step(ctx, &r))
	}
	before, err1 := b.spent(e)
	err = errors.Join(err, e.steps[last](ctx, &r))
	after, err2 := b.spent(e)
	var s sample
	after.since(before).share(&s, requests)
	if r.others[0] != nil {
		_ = release(r.others) // for those that wait; what was given back before is no matter
	}
	r.waiting.Wait()
	return s, errors.Join(err, err1, err2, c.close(), other.close())
}

// warm makes connections, and loads scripts.
func (c contender) warm(ctx context.Context, names []string) error {
	return each(crowd, func(i int) error { return c.pair(ctx, names[i]) })
}

// A requestRun is what a run of row 14 has: two clients, and many names.
type requestRun struct {
	c, other        contender
	b               *bench
	e               entry
	names           []string
	unlocks, others []func() error
	waiting         sync.WaitGroup
}

// A step is what row 14 does for each of its names.
type step func(ctx context.Context, r *requestRun) error

func acquire(ctx context.Context, r *requestRun) error { return r.c.hold(ctx, r.names, r.unlocks) }

func giveBack(_ context.Context, r *requestRun) error { return release(r.unlocks) }

// block has the other client hold all names.
func block(ctx context.Context, r *requestRun) error { return r.other.hold(ctx, r.names, r.others) }

// renewAll waits until each lease was renewed once.
func renewAll(context.Context, *requestRun) error {
	time.Sleep(shortTTL / 3)
	return nil
}

// listen has both clients wait once, so that they are subscribed.
func listen(ctx context.Context, r *requestRun) error {
	name := r.names[0] + ":listen"
	wait := func(holder, waiter contender) error {
		unlock, err := holder.lock(ctx, name)
		if err != nil {
			return err
		}
		got := make(chan error)
		go func() { got <- waiter.pair(ctx, name) }()
		time.Sleep(100 * time.Millisecond)
		return errors.Join(unlock(), <-got)
	}
	return errors.Join(wait(r.other, r.c), wait(r.c, r.other))
}

// join has a goroutine wait for each name, and returns when all have asked.
func join(ctx context.Context, r *requestRun) error {
	before, err := r.b.spent(r.e)
	for i, name := range r.names {
		r.waiting.Go(func() {
			if unlock, err := r.c.lock(ctx, name); err == nil {
				r.unlocks[i] = unlock
			}
		})
	}
	for now := before; err == nil && now.commands < before.commands+requests; {
		time.Sleep(time.Millisecond)
		now, err = r.b.spent(r.e)
	}
	return err
}

// handOver gives all names back, for which others wait, and returns when these have them and have
// renewed them.
func handOver(_ context.Context, r *requestRun) error {
	err := release(r.others)
	r.waiting.Wait()
	time.Sleep(100 * time.Millisecond)
	return err
}

// live lets the waiters show life, which each does every 5 s.
func live(context.Context, *requestRun) error {
	time.Sleep(5 * time.Second)
	return nil
}

// retain uses all names until they stay with their client.
func retain(ctx context.Context, r *requestRun) error {
	return each(requests, func(i int) (err error) {
		for range usesToRetain {
			err = errors.Join(err, r.c.pair(ctx, r.names[i]))
		}
		return err
	})
}

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
	for first := range crowd {
		all.Go(func() {
			for i := first; i < n && errs[first] == nil; i += crowd {
				errs[first] = do(i)
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

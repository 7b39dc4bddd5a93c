package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// childArg is the argument that makes this program a worker of another one.
const childArg = "bench-worker"

// A duty tells a worker process what to do.
type duty struct {
	Target    target
	Contender int // its place among the entries
	Row       int
	Name      string
	Board     string // path of the file
	Who       int
}

// child does its duty, and prints the times of its hand-overs.
func child(order string) error {
	var d duty
	if err := json.Unmarshal([]byte(order), &d); err != nil {
		return err
	}
	on, err := openBoard(d.Board)
	if err != nil {
		return err
	}
	c, err := entries[d.Contender].open(d.Target)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	// Make connections and load scripts, on a name that nobody else uses.
	ctx, own := context.Background(), fmt.Sprintf("%s:warm:%d", d.Name, d.Who)
	if err := c.prepare(ctx, own); err != nil {
		return err
	}
	if err := c.pair(ctx, own); err != nil {
		return err
	}
	times := []time.Duration{}
	switch {
	case d.Row == 4:
		err = contend(ctx, c, d.Name, on, d.Who)
	case d.Row == 9:
		times, err = read(ctx, c, d.Name, on, d.Who)
	case entries[d.Contender].unused && d.Who == 0:
		err = leaveUnused(ctx, c, d.Name, on)
	case entries[d.Contender].unused:
		times, err = takeUnused(ctx, c, d.Name, on)
	default:
		times, err = takeTurns(ctx, c, d.Name, on, d.Who)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// read does what a process of row 9 does: its goroutines read, and one time in twenty they write.
// It returns how long the writers waited.
func read(ctx context.Context, c contender, name string, on *board, process int) ([]time.Duration, error) {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		waited = make([]time.Duration, 0, 1<<12)
		failed error
	)
	for who := process * mates; who < (process+1)*mates; who++ {
		all.Go(func() {
			times, err := readOften(ctx, c, name, on, who)
			mu.Lock()
			defer mu.Unlock()
			waited, failed = append(waited, times...), errors.Join(failed, err)
		})
	}
	all.Wait()
	return waited, failed
}

// readOften is one goroutine of row 9.
func readOften(ctx context.Context, c contender, name string, on *board, who int) (waited []time.Duration, err error) {
	on.begin()
	for i := who; !on.over(); i++ { // they do not write all at once
		lock, start := c.rlock, time.Now()
		writes := i%20 == 0
		if writes {
			lock = c.wlock
		}
		unlock, err := lock(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if writes {
			waited = append(waited, time.Since(start))
			on.enter(who)
			on.leave(who)
		} else {
			on.share(who)
		}
		if err := unlock(); err != nil {
			return nil, fmt.Errorf("unlock: %w", err)
		}
	}
	return waited, nil
}

// leaveUnused is one of two processes: it uses a name until it retains it, and lets the other take
// it then, name after name.
func leaveUnused(ctx context.Context, c contender, name string, on *board) error {
	on.begin()
	for i := int64(1); !on.over(); i++ {
		for range 4 {
			if err := c.pair(ctx, nth(name, i)); err != nil {
				return err
			}
		}
		on.last.Store(i)
		for on.last.Load() == i && !on.over() {
			time.Sleep(glance)
		}
	}
	return nil
}

// takeUnused is the other one. It returns how long it waited for each name.
func takeUnused(ctx context.Context, c contender, name string, on *board) ([]time.Duration, error) {
	times := make([]time.Duration, 0, 1<<12)
	on.begin()
	for !on.over() {
		i := on.last.Load()
		if i <= 0 {
			time.Sleep(glance)
			continue
		}
		time.Sleep(hold)
		start := time.Now()
		unlock, err := c.lock(ctx, nth(name, i))
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		times = append(times, time.Since(start))
		on.count(1)
		if err := unlock(); err != nil {
			return nil, fmt.Errorf("unlock: %w", err)
		}
		on.last.Store(-i)
	}
	return times, nil
}

// nth is one of the names that two processes go through.
func nth(name string, i int64) string { return fmt.Sprintf("%s:%d", name, i) }

const (
	glance = 200 * time.Microsecond // between two looks at the board
	hold   = time.Millisecond       // long enough that the other's request has reached the server
)

// takeTurns does what a process of row 5 does. It does not ask again before the other has had its
// turn, because some locks would let it in at once, and it gives back when the other has been
// waiting for a while. It returns, for each turn it got, the time since just before the other began
// to give back. Both clocks are the host's wall clock; if that is set meanwhile, it spoils one time
// out of many.
func takeTurns(ctx context.Context, c contender, name string, on *board, who int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, 1<<12)
	other := &on.workers[1-who]
	on.begin()
	for !on.over() {
		if on.last.Load() == int64(who)+1 {
			time.Sleep(glance)
			continue
		}
		on.ask(who)
		unlock, err := c.lock(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if since := time.Now().UnixNano() - on.releasing.Load(); on.last.Load() != 0 && since > 0 {
			times = append(times, time.Duration(since))
		}
		on.enter(who)
		for other.asked.Load() == 0 && !on.over() {
			time.Sleep(glance)
		}
		time.Sleep(hold)
		on.leave(who)
		on.releasing.Store(time.Now().UnixNano())
		if err := unlock(); err != nil {
			return nil, fmt.Errorf("unlock: %w", err)
		}
	}
	return times, nil
}

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
	Worker    int
}

// A worker is a goroutine or a process that locks one name, or as many as its work needs.
type worker struct {
	contender
	name   string
	board  *board
	number int
}

// A work is what a worker does until its board says that it is over. It returns the times that the
// row is about, if there are any.
type work func(ctx context.Context, w worker) ([]time.Duration, error)

// child does its duty, and prints the times of its work.
func child(encoded string) error {
	var d duty
	if err := json.Unmarshal([]byte(encoded), &d); err != nil {
		return err
	}
	b, err := openBoard(d.Board)
	if err != nil {
		return err
	}
	e := entries[d.Contender]
	c, err := e.open(d.Target)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	// Make connections and load scripts, on a name that nobody else uses.
	ctx, own := context.Background(), fmt.Sprintf("%s:warm:%d", d.Name, d.Worker)
	if err := c.prepare(ctx, own); err != nil {
		return err
	}
	if err := c.pair(ctx, own); err != nil {
		return err
	}
	do := rows[d.Row-1].work
	if e.work != nil {
		do = e.work
	}
	times, err := do(ctx, worker{contender: c, name: d.Name, board: b, number: d.Worker})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// contend is the work of rows 3, 4 and 11: lock and unlock, without a pause. It ends only after it
// was inside, so that whoever still waits gets in after it and ends too.
func contend(ctx context.Context, w worker) ([]time.Duration, error) {
	w.board.begin()
	for !w.board.over() {
		w.board.ask(w.number)
		err := w.lock.do(ctx, w.name, func() {
			w.board.enter(w.number)
			w.board.leave(w.number)
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// readAndWrite is the work of a process of row 9: its goroutines read, and one time in twenty they
// write. It returns how long the writers waited.
func readAndWrite(ctx context.Context, process worker) ([]time.Duration, error) {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		waited = make([]time.Duration, 0, 1<<12)
		failed error
	)
	for i := range mates {
		w := process
		w.number = process.number*mates + i
		all.Go(func() {
			times, err := readOften(ctx, w)
			mu.Lock()
			defer mu.Unlock()
			waited, failed = append(waited, times...), errors.Join(failed, err)
		})
	}
	all.Wait()
	return waited, failed
}

// readOften is one goroutine of row 9. Each starts at another of its twenty acquisitions, so that
// not all write at once.
func readOften(ctx context.Context, w worker) (waited []time.Duration, err error) {
	w.board.begin()
	for i := w.number; !w.board.over(); i++ {
		lock, visit, start := w.rlock, func() { w.board.share(w.number) }, time.Now()
		if i%20 == 0 {
			lock, visit = w.wlock, func() {
				waited = append(waited, time.Since(start))
				w.board.enter(w.number)
				w.board.leave(w.number)
			}
		}
		if err := lock.do(ctx, w.name, visit); err != nil {
			return nil, err
		}
	}
	return waited, nil
}

// usesToRetain is how often a name is used until it is surely retained: the third use makes the
// hold one that stays, and the fourth finds it there.
const usesToRetain = 4

// leaveOrTakeUnused is the work of two processes: one leaves names unused, the other takes them.
func leaveOrTakeUnused(ctx context.Context, w worker) ([]time.Duration, error) {
	if w.number == 0 {
		return nil, leaveUnused(ctx, w)
	}
	return takeUnused(ctx, w)
}

// leaveUnused locks a name until its process retains it, then offers it to the other process and
// waits until that has taken it; name after name.
func leaveUnused(ctx context.Context, w worker) error {
	w.board.begin()
	for i := int64(1); !w.board.over(); i++ {
		for range usesToRetain {
			if err := w.pair(ctx, nth(w.name, i)); err != nil {
				return err
			}
		}
		w.board.offered.Store(i)
		for w.board.offered.Load() == i && !w.board.over() {
			time.Sleep(boardPoll)
		}
	}
	return nil
}

// takeUnused locks the names that the other process offers. It returns how long it waited for each.
func takeUnused(ctx context.Context, w worker) ([]time.Duration, error) {
	times := make([]time.Duration, 0, 1<<12)
	w.board.begin()
	for !w.board.over() {
		i := w.board.offered.Load()
		if i <= 0 {
			time.Sleep(boardPoll)
			continue
		}
		time.Sleep(requestTime)
		start := time.Now()
		err := w.lock.do(ctx, nth(w.name, i), func() { times = append(times, time.Since(start)) })
		if err != nil {
			return nil, err
		}
		w.board.count(w.number)
		w.board.offered.Store(-i)
	}
	return times, nil
}

// nth is one of the names that two processes go through.
func nth(name string, i int64) string { return fmt.Sprintf("%s:%d", name, i) }

const (
	boardPoll   = 200 * time.Microsecond // between two looks at the board
	requestTime = time.Millisecond       // in which a request has surely reached the server
)

// takeTurns is the work of a process of row 5. It does not ask again before the other has had its
// turn, because some locks would let it in at once, and it unlocks when the other has been waiting
// for a while. It returns, for each turn it got, the time since just before the other began to
// unlock. Both clocks are the host's wall clock: a clock step spoils one sample.
func takeTurns(ctx context.Context, w worker) ([]time.Duration, error) {
	times := make([]time.Duration, 0, 1<<12)
	b, other := w.board, &w.board.workers[1-w.number]
	b.begin()
	for !b.over() {
		if b.last.Load() == int64(w.number)+1 {
			time.Sleep(boardPoll)
			continue
		}
		b.ask(w.number)
		err := w.lock.do(ctx, w.name, func() {
			if since := time.Now().UnixNano() - b.releasing.Load(); b.last.Load() != 0 && since > 0 {
				times = append(times, time.Duration(since))
			}
			b.enter(w.number)
			for other.asked.Load() == 0 && !b.over() {
				time.Sleep(boardPoll)
			}
			time.Sleep(requestTime)
			b.leave(w.number)
			b.releasing.Store(time.Now().UnixNano())
		})
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

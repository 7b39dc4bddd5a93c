package main

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"
)

// maxWorkers is how many goroutines or processes can share a board.
const maxWorkers = 200

// A board is the memory that the workers of a row share. It says when they run, counts what they
// acquire, and notices two that hold one name at once. Processes map it from a file, and all of it
// is atomic. To enter and to leave costs some ten nanoseconds. A worker is a goroutine or a
// process, known by its number.
type board struct {
	phase atomic.Int64 // waiting, running or over
	ready atomic.Int64 // workers that can begin

	// offered is of row 10: the number of the name that one process leaves to the other, negated
	// once that has taken it.
	offered atomic.Int64
	_       [5]int64 // each group has a cache line of its own

	holder     atomic.Int64 // the worker inside, plus one, or 0
	last       atomic.Int64 // the worker that came in last, plus one
	entered    atomic.Int64 // acquisitions
	handovers  atomic.Int64 // how often the holder was another than the one before
	violations atomic.Int64 // two at once
	inTurn     atomic.Int64 // acquisitions in turn: see enter
	releasing  atomic.Int64 // when the last holder began to unlock, in nanoseconds
	_          [1]int64

	workers [maxWorkers]struct {
		count atomic.Int64 // acquisitions
		asked atomic.Int64 // while asking: entered as it was then, plus one; else 0
		_     [6]int64
	}
}

const boardSize = int(unsafe.Sizeof(board{}))

const (
	waiting = iota
	running
	over
)

// openBoard maps the board that the file at path is, making the file if there is none. The mapping
// lasts as long as the process.
func openBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(boardSize)); err != nil {
		return nil, err
	}
	return mapBoard(f)
}

// ask notes that a worker is about to lock.
func (b *board) ask(worker int) { b.workers[worker].asked.Store(b.entered.Load() + 1) }

// enter notes that a worker has just got the lock. If it asked on the board, its acquisition is in
// turn if, since then, about as many others got in as there are: give or take a quarter.
func (b *board) enter(worker int) {
	if !b.holder.CompareAndSwap(0, int64(worker)+1) {
		b.violations.Add(1)
		b.holder.Store(int64(worker) + 1)
	}
	if b.last.Swap(int64(worker)+1) != int64(worker)+1 {
		b.handovers.Add(1)
	}
	entered, asked := b.count(worker), b.workers[worker].asked.Swap(0)
	if asked == 0 {
		return
	}
	// Both are one too large: entered counts this acquisition, and asked is stored plus one.
	between, others := entered-asked, b.ready.Load()-1
	if 4*between >= 3*others && 4*between <= 5*others {
		b.inTurn.Add(1)
	}
}

// share counts an acquisition of a reader, beside whom no writer may hold.
func (b *board) share(worker int) {
	b.count(worker)
	if b.holder.Load() != 0 {
		b.violations.Add(1)
	}
}

// count counts an acquisition of a worker. It returns the number of acquisitions by all workers.
func (b *board) count(worker int) int64 {
	b.workers[worker].count.Add(1)
	return b.entered.Add(1)
}

// leave notes that a worker is about to unlock.
func (b *board) leave(worker int) {
	if !b.holder.CompareAndSwap(int64(worker)+1, 0) {
		b.violations.Add(1)
	}
}

// begin reports that a worker is ready, and waits until all are: then they begin together.
func (b *board) begin() {
	b.ready.Add(1)
	for b.phase.Load() == waiting {
		time.Sleep(time.Millisecond)
	}
}

// over reports whether the workers are to end.
func (b *board) over() bool { return b.phase.Load() == over }

// A tally is what stood on a board at one moment.
type tally struct {
	at                time.Time
	handovers, inTurn int64
	counts            []int64
}

// tally takes the tally of the first n workers.
func (b *board) tally(n int) tally {
	t := tally{time.Now(), b.handovers.Load(), b.inTurn.Load(), make([]int64, n)}
	for i := range t.counts {
		t.counts[i] = b.workers[i].count.Load()
	}
	return t
}

// since turns what came to the tally after an earlier one, and what was spent meanwhile, into a
// sample.
func (t tally) since(earlier tally, spent bill) sample {
	seconds := t.at.Sub(earlier.at).Seconds()
	counts, acquired := make([]int64, len(t.counts)), int64(0)
	for i := range counts {
		counts[i] = t.counts[i] - earlier.counts[i]
		acquired += counts[i]
	}
	s := sample{
		rate:      float64(acquired) / seconds,
		handovers: float64(t.handovers-earlier.handovers) / seconds,
		jain:      jain(counts),
		inTurn:    share(t.inTurn-earlier.inTurn, acquired),
	}
	spent.share(&s, acquired)
	return s
}

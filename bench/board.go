package main

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"
)

// maxWorkers is how many goroutines or processes can sign on a board.
const maxWorkers = 200

// A board is where the holders of one name sign in and out: it is the referee. It is plain memory,
// shared between processes as a mapped file, and all of it is atomic. To sign costs some ten
// nanoseconds. A worker is a goroutine or a process, known by its number.
type board struct {
	phase atomic.Int64 // waiting, running or over
	ready atomic.Int64 // workers that can begin
	_     [6]int64     // each group has a cache line of its own

	holder     atomic.Int64 // the worker inside, plus one, or 0
	last       atomic.Int64 // the worker that came in last, plus one
	entered    atomic.Int64 // acquisitions
	handovers  atomic.Int64 // how often the holder was another than the one before
	violations atomic.Int64 // two at once
	inTurn     atomic.Int64 // acquisitions for which the asker had waited for about one turn of each of the others
	releasing  atomic.Int64 // when the last holder began to give back, in nanoseconds
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

// ask notes that who is about to lock.
func (b *board) ask(who int) { b.workers[who].asked.Store(b.entered.Load() + 1) }

// enter signs who in, who has just got the lock.
func (b *board) enter(who int) {
	if !b.holder.CompareAndSwap(0, int64(who)+1) {
		b.violations.Add(1)
		b.holder.Store(int64(who) + 1)
	}
	if b.last.Load() != int64(who)+1 {
		b.last.Store(int64(who) + 1)
		b.handovers.Add(1)
	}
	others := b.ready.Load() - 1
	between := b.count(who) - b.workers[who].asked.Swap(0)
	if 4*between >= 3*others && 4*between <= 5*others {
		b.inTurn.Add(1)
	}
}

// share counts an acquisition of who, beside whom nobody may hold.
func (b *board) share(who int) {
	b.count(who)
	if b.holder.Load() != 0 {
		b.violations.Add(1)
	}
}

// count counts an acquisition of who, and returns how many there were.
func (b *board) count(who int) int64 {
	b.workers[who].count.Add(1)
	return b.entered.Add(1)
}

// leave signs who out, who is about to unlock.
func (b *board) leave(who int) {
	if !b.holder.CompareAndSwap(int64(who)+1, 0) {
		b.violations.Add(1)
	}
}

func (b *board) begin() {
	b.ready.Add(1)
	for b.phase.Load() == waiting {
		time.Sleep(time.Millisecond)
	}
}

// over reports whether the workers are to go home.
func (b *board) over() bool { return b.phase.Load() == over }

// A tally is what stood on a board at one moment.
type tally struct {
	at                time.Time
	handovers, inTurn int64
	counts            []int64
}

// read takes the tally of the first n workers.
func (b *board) read(n int) tally {
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

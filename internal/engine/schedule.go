package engine

import (
	"container/heap"
	"time"
)

// A schedule has entries in the order in which they are due, and one timer, for the first of them.
// The timer stays when an entry is taken out. If it fires for nothing it is set anew, which costs
// less than setting it for each entry that is soon over. The engine's mutex guards it.
type schedule[T scheduled] struct {
	entries  dueHeap[T]
	timer    *time.Timer // nil: never set
	firesAt  time.Time   // when the timer fires; zero: it is not set
	whenIsUp func()      // what the timer calls; it calls fired when nothing is due any more
}

// A scheduled is an entry of a schedule.
type scheduled interface{ due() *dueTime }

// A dueTime is when an entry is due, and where it is.
type dueTime struct {
	at    time.Time
	place int // in the heap, from 1 on; 0: in none
}

// add takes an entry in that is due at a moment, or puts one that is in where that belongs.
func (s *schedule[T]) add(entry T, at time.Time) {
	due := entry.due()
	due.at = at
	if due.place == 0 {
		heap.Push(&s.entries, entry)
	} else {
		heap.Fix(&s.entries, due.place-1)
	}
	s.arm()
}

// remove takes an entry out, if it is in.
func (s *schedule[T]) remove(entry T) {
	if place := entry.due().place; place > 0 {
		heap.Remove(&s.entries, place-1)
	}
}

// fired sets the timer anew after it has fired.
func (s *schedule[T]) fired() {
	s.firesAt = time.Time{}
	s.arm()
}

// arm sets the timer if the first entry is due before it fires.
func (s *schedule[T]) arm() {
	if len(s.entries) == 0 {
		return
	}
	first := s.entries[0].due().at
	if !s.firesAt.IsZero() && !first.Before(s.firesAt) {
		return
	}
	s.firesAt = first
	if d := time.Until(first); s.timer == nil {
		s.timer = time.AfterFunc(d, s.whenIsUp)
	} else {
		s.timer.Reset(d)
	}
}

// stop ends the timer.
func (s *schedule[T]) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// dueHeap is a heap of entries by when they are due.
type dueHeap[T scheduled] []T

func (h dueHeap[T]) Len() int           { return len(h) }
func (h dueHeap[T]) Less(i, j int) bool { return h[i].due().at.Before(h[j].due().at) }

func (h dueHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].due().place, h[j].due().place = i+1, j+1
}

// Push implements heap.Interface.
func (h *dueHeap[T]) Push(x any) {
	entry := x.(T)
	*h = append(*h, entry)
	entry.due().place = len(*h)
}

// Pop implements heap.Interface.
func (h *dueHeap[T]) Pop() any {
	last := len(*h) - 1
	entry := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	entry.due().place = 0
	return entry
}

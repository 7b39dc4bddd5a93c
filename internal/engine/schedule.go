package engine

import (
	"container/heap"
	"time"
)

// A schedule has entries in the order in which they are due, and one timer, for the first of them.
// The timer stays when an entry is taken out. If it fires for nothing it is set anew, which costs
// less than setting it for each entry that is soon over. The engine's mutex guards it.
type schedule[T scheduleEntry] struct {
	entries  dueHeap[T]
	timer    *time.Timer // nil: never set
	firesAt  time.Time   // when the timer fires; zero: it is not set
	began    time.Time   // what the times of the entries count from; zero: none was ever added
	whenIsUp func()      // what the timer calls; it calls rearm when nothing is due any more
}

// A scheduleEntry is an entry of a schedule.
type scheduleEntry interface {
	dueAt() time.Time // when it is due now
	entry() *dueTime  // where the schedule keeps it
}

// A dueTime is when an entry is due, as the schedule last heard, and where it is.
type dueTime struct {
	at    time.Duration // from the beginning of the schedule
	place int           // in the heap, from 1 on; 0: in none
}

// add takes one in, or puts one that is in where its time belongs.
func (s *schedule[T]) add(t T) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	due := t.entry()
	due.at = t.dueAt().Sub(s.began)
	if due.place == 0 {
		heap.Push(&s.entries, t)
	} else {
		heap.Fix(&s.entries, due.place-1)
	}
	s.arm()
}

// update puts one where its new time belongs, if it is in.
func (s *schedule[T]) update(t T) {
	if t.entry().place > 0 {
		s.add(t)
	}
}

// remove takes one out, if it is in.
func (s *schedule[T]) remove(t T) {
	if place := t.entry().place; place > 0 {
		heap.Remove(&s.entries, place-1)
	}
}

// due is when the first entry is due. There must be one.
func (s *schedule[T]) due() time.Time { return s.began.Add(s.entries[0].entry().at) }

// rearm sets the timer anew after it has fired.
func (s *schedule[T]) rearm() {
	s.firesAt = time.Time{}
	s.arm()
}

// arm sets the timer if the first entry is due before it fires.
func (s *schedule[T]) arm() {
	if len(s.entries) == 0 {
		return
	}
	first := s.due()
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

func (s *schedule[T]) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// dueHeap is a heap of entries by when they are due.
type dueHeap[T scheduleEntry] []T

func (h dueHeap[T]) Len() int           { return len(h) }
func (h dueHeap[T]) Less(i, j int) bool { return h[i].entry().at < h[j].entry().at }

func (h dueHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].entry().place, h[j].entry().place = i+1, j+1
}

// Push implements heap.Interface.
func (h *dueHeap[T]) Push(x any) {
	t := x.(T)
	*h = append(*h, t)
	t.entry().place = len(*h)
}

// Pop implements heap.Interface.
func (h *dueHeap[T]) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	t.entry().place = 0
	return t
}

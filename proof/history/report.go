package history

import (
	"fmt"
	"strings"
	"time"
)

// A Summary is what a history amounts to, for people.
type Summary struct {
	Calls       int
	Results     map[Kind]map[Result]int
	Holds       int           // leases and entries that were trusted at all
	Ends        map[Event]int // how holds ended
	LongestWait time.Duration // of a Lock, the time its process stood still not counted
	LatestTold  time.Duration // how long after its trust end a loss was told, again not counting stops
}

// looking is at most how long ago a worker that waits for the end of a hold has looked at it.
const looking = int64(10 * time.Millisecond)

// Summarize counts.
func Summarize(h *History) Summary {
	s := Summary{Calls: len(h.Ops), Results: map[Kind]map[Result]int{}, Ends: map[Event]int{}}
	for _, op := range h.Ops {
		counts := s.Results[op.Call.Kind]
		if counts == nil {
			counts = map[Result]int{}
			s.Results[op.Call.Kind] = counts
		}
		if op.Return == nil {
			counts["none"]++
			continue
		}
		counts[op.Return.Result]++
		if op.Call.Kind == Lock {
			waited := op.Return.At - op.Call.At - h.stopped(op.Call.Proc, op.Call.At, op.Return.At)
			s.LongestWait = max(s.LongestWait, time.Duration(waited))
		}
	}
	for _, hold := range h.Holds {
		if !hold.trusted() {
			s.Ends["untrusted"]++
			continue
		}
		s.Holds++
		s.Ends[hold.Cause]++
		// Only where the worker was looking when trust ended: else it is late, not the notice.
		if n := len(hold.Trusts); n > 0 && hold.Notice != nil && hold.Cause == Trust && hold.Trusts[n-1].At > hold.End-looking {
			told := hold.Notice.At - hold.End - h.stopped(hold.Proc, hold.End, hold.Notice.At)
			s.LatestTold = max(s.LatestTold, time.Duration(told))
		}
	}
	return s
}

// String is one line a kind of operation, and one of holds.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, longest wait %v\n", s.Calls, s.LongestWait.Round(time.Millisecond))
	for _, kind := range []Kind{Lock, TryLock, Release, Write} {
		fmt.Fprintf(&b, "  %-8s %v\n", kind, s.Results[kind])
	}
	fmt.Fprintf(&b, "  holds    %d trusted, ended by %v; latest notice of a loss %v after its trust end",
		s.Holds, s.Ends, s.LatestTold.Round(time.Microsecond))
	return b.String()
}

package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Summary is what a history amounts to, for people.
type Summary struct {
	Calls        int
	Results      map[string]map[Result]int // by type and kind
	Holds        int                       // leases and entries that were trusted at all
	Ends         map[Event]int             // how holds ended
	LongestWaits map[Type]time.Duration    // of a Lock, the time its process stood still not counted
	LongestIdle  time.Duration             // of a wait, the time that neither holders nor faults explain
	LatestTold   time.Duration             // how long after its trust end a loss was told, again not counting stops
}

// looking is at most how long ago a worker that waits for the end of a hold has looked at it.
const looking = int64(10 * time.Millisecond)

// Summarize counts.
func Summarize(h *History) Summary {
	s := Summary{Calls: len(h.Ops), Results: map[string]map[Result]int{}, Ends: map[Event]int{},
		LongestWaits: map[Type]time.Duration{}}
	h.eachIdle(func(_ *Op, idle int64) { s.LongestIdle = max(s.LongestIdle, time.Duration(idle)) })
	for _, op := range h.Ops {
		row := rowName(op.Call)
		counts := s.Results[row]
		if counts == nil {
			counts = map[Result]int{}
			s.Results[row] = counts
		}
		if op.Return == nil {
			counts["none"]++
			continue
		}
		counts[op.Return.Result]++
		if op.Call.Kind == Lock {
			waited := op.Return.At - op.Call.At - h.stoppedTime(op.Call.Proc, op.Call.At, op.Return.At)
			s.LongestWaits[op.Call.Type] = max(s.LongestWaits[op.Call.Type], time.Duration(waited))
		}
	}
	for _, hold := range h.Holds {
		if !hold.isTrusted() {
			s.Ends["untrusted"]++
			continue
		}
		s.Holds++
		s.Ends[hold.Cause]++
		// Only where the worker was looking when trust ended: else it is late, not the notice.
		if n := len(hold.Trusts); n > 0 && hold.Notice != nil && hold.Cause == Trust &&
			hold.Trusts[n-1].At > hold.End-looking {
			told := hold.Notice.At - hold.End - h.stoppedTime(hold.Proc, hold.End, hold.Notice.At)
			s.LatestTold = max(s.LatestTold, time.Duration(told))
		}
	}
	return s
}

// String returns one line a kind of operation, and one of holds.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls; at most %v of a wait explained by neither holders nor faults; longest waits:", s.Calls,
		s.LongestIdle.Round(time.Millisecond))
	for _, t := range slices.Sorted(maps.Keys(s.LongestWaits)) {
		fmt.Fprintf(&b, " %s %v", t, s.LongestWaits[t].Round(time.Millisecond))
	}
	b.WriteByte('\n')
	for _, row := range slices.Sorted(maps.Keys(s.Results)) {
		fmt.Fprintf(&b, "  %-19s %v\n", row, s.Results[row])
	}
	fmt.Fprintf(&b, "  holds    %d trusted, ended by %v; latest notice of a loss %v after its trust end",
		s.Holds, s.Ends, s.LatestTold.Round(time.Microsecond))
	return b.String()
}

// rowName returns the line of a summary that an operation counts in.
func rowName(call Record) string {
	mode := ""
	if call.Shares && call.Kind != Release {
		mode = " to read"
	}
	return strings.TrimSpace(string(call.Type) + " " + string(call.Kind) + mode)
}

package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Summary is what a history amounts to, for people.
type Summary struct {
	Calls   int
	Results map[string]map[Result]int // by type and kind
	Holds   int                       // leases and entries that were trusted at all
	Ends    map[Event]int             // how holds ended
}

// Summarize counts.
func Summarize(h *History) Summary {
	s := Summary{Calls: len(h.Ops), Results: map[string]map[Result]int{}, Ends: map[Event]int{}}
	for _, op := range h.Ops {
		row := strings.TrimSpace(string(op.Call.Type) + " " + string(op.Call.Kind))
		if s.Results[row] == nil {
			s.Results[row] = map[Result]int{}
		}
		result := Result("none")
		if op.Return != nil {
			result = op.Return.Result
		}
		s.Results[row][result]++
	}
	for _, hold := range h.Holds {
		if hold.isTrusted() {
			s.Holds++
			s.Ends[hold.Cause]++
		}
	}
	return s
}

// String returns one line a kind of operation, and one of holds.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls\n", s.Calls)
	for _, row := range slices.Sorted(maps.Keys(s.Results)) {
		fmt.Fprintf(&b, "  %-19s %v\n", row, s.Results[row])
	}
	fmt.Fprintf(&b, "  holds    %d trusted, ended by %v", s.Holds, s.Ends)
	return b.String()
}

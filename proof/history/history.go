package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// A History is what records say, joined. Its parts point into one slice of records, which is not to
// be changed.
type History struct {
	Records []Record
	Ops     []*Op   // in the order of their calls
	Holds   []*Hold // in the order in which they began
	stops   map[string][]span
	stalls  map[string][]span
	mutes   map[string][]span // by the name of the slot: a process without its life
	cuts    []int64           // when all connections of the server were cut
	kills   map[string]int64
	closes  map[string]int64
}

// An Op is one operation.
type Op struct {
	Call   Record
	Return *Record // nil: it never returned
}

// A span is a time in which a process stood still.
type span struct{ from, to int64 }

// Assemble joins records, which must be in the order of time, as Load leaves them.
func Assemble(records []Record) (*History, error) {
	h := &History{Records: records, stops: map[string][]span{}, stalls: map[string][]span{}, mutes: map[string][]span{},
		kills: map[string]int64{}, closes: map[string]int64{}}
	ops := map[string]*Op{}
	holds := map[string][]*Hold{} // by ID; those of a group have one
	for i := range records {
		if err := h.addRecord(&records[i], ops, holds); err != nil {
			return nil, fmt.Errorf("history: %w: %s", err, records[i].Format(0))
		}
	}
	for _, hold := range h.Holds {
		h.findEnd(hold)
		hold.findRoot()
	}
	return h, nil
}

func (h *History) addRecord(r *Record, ops map[string]*Op, holds map[string][]*Hold) error {
	key := fmt.Sprint(r.Proc, "#", r.Op)
	switch r.Event {
	case Call:
		if ops[key] != nil {
			return fmt.Errorf("a second call of operation %s", key)
		}
		op := &Op{Call: *r}
		ops[key] = op
		h.Ops = append(h.Ops, op)
		for _, hold := range holds[r.Hold] {
			hold.addOperation(op)
		}
	case Return:
		op := ops[key]
		if op == nil || op.Return != nil {
			return fmt.Errorf("a return of operation %s without its call", key)
		}
		op.Return = r
		if r.Kind.Holds() && r.Result == OK {
			return h.beginHold(op, holds)
		}
	case Trust, Lost, Detach:
		if holds[r.Hold] == nil {
			return fmt.Errorf("word of an unknown hold %s", r.Hold)
		}
		for _, hold := range holds[r.Hold] {
			hold.addNotice(r)
		}
	default:
		return h.addProcessEvent(r)
	}
	return nil
}

// addProcessEvent takes down what happened to a process.
func (h *History) addProcessEvent(r *Record) error {
	switch r.Event {
	case Close:
		h.closes[r.Proc] = r.At
	case Kill:
		if h.kills[r.Proc] = r.At; r.Proc == Server {
			h.cuts = append(h.cuts, r.At)
		}
	case Stop:
		h.stops[r.Proc] = append(h.stops[r.Proc], span{r.At, never})
	case Cont:
		if s := h.stops[r.Proc]; len(s) > 0 {
			s[len(s)-1].to = r.At
		}
	case Stall:
		h.stalls[r.Proc] = append(h.stalls[r.Proc], span{r.At, r.At + r.Limit})
	case Mute:
		h.mutes[r.Proc] = append(h.mutes[r.Proc], span{r.At, r.At + r.Limit})
	default:
		return fmt.Errorf("event %q", r.Event)
	}
	return nil
}

func (h *History) beginHold(op *Op, holds map[string][]*Hold) error {
	r := op.Return
	if r.Hold == "" || holds[r.Hold] != nil {
		return fmt.Errorf("hold %q is there already, or has no ID", r.Hold)
	}
	tokens := r.Tokens
	if len(tokens) == 0 {
		tokens = map[string]int64{r.Name: r.Token}
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		hold := &Hold{
			Claim: judge.Claim{Owner: r.Owner, Shares: r.Shares, Weight: r.Weight},
			ID:    r.Hold, Name: name, Proc: r.Proc, Token: tokens[name],
			Called: op.Call.At, Start: r.At, Lock: *r, asked: op.Call,
		}
		for _, outer := range holds[r.Root] {
			if outer.Name == name && r.Type != Semaphore {
				hold.outer = outer
			}
		}
		holds[r.Hold] = append(holds[r.Hold], hold)
		h.Holds = append(h.Holds, hold)
	}
	return nil
}

// Server is the process that records about the server name.
const Server = "server"

// stoppedTime returns how long proc stood still between from and to.
func (h *History) stoppedTime(proc string, from, to int64) int64 {
	var total int64
	for _, s := range h.stops[proc] {
		total += max(0, min(s.to, to)-max(s.from, from))
	}
	return total
}

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

package history

import "fmt"

// A History is what records say, joined. Its parts point into one slice of records, which is not to be changed.
type History struct {
	Records []Record
	Ops     []*Op   // in the order of their calls
	Holds   []*Hold // in the order in which they began
	stops   map[string][]span
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
	h := &History{Records: records, stops: map[string][]span{}, kills: map[string]int64{}, closes: map[string]int64{}}
	ops := map[string]*Op{}
	holds := map[string]*Hold{}
	for i := range records {
		if err := h.take(&records[i], ops, holds); err != nil {
			return nil, fmt.Errorf("history: %w: %s", err, records[i].Format(0))
		}
	}
	for _, hold := range h.Holds {
		h.finish(hold)
		hold.settle()
	}
	return h, nil
}

func (h *History) take(r *Record, ops map[string]*Op, holds map[string]*Hold) error {
	key := fmt.Sprint(r.Proc, "#", r.Op)
	switch r.Event {
	case Call:
		if ops[key] != nil {
			return fmt.Errorf("a second call of operation %s", key)
		}
		op := &Op{Call: *r}
		ops[key] = op
		h.Ops = append(h.Ops, op)
		if hold := holds[r.Hold]; hold != nil && r.Kind == Release {
			hold.Releases = append(hold.Releases, op)
		}
	case Return:
		op := ops[key]
		if op == nil || op.Return != nil {
			return fmt.Errorf("a return of operation %s without its call", key)
		}
		op.Return = r
		if (r.Kind == Lock || r.Kind == TryLock) && r.Result == OK {
			return h.begin(op, holds)
		}
	case Trust, Lost:
		hold := holds[r.Hold]
		if hold == nil {
			return fmt.Errorf("word of an unknown hold %s", r.Hold)
		}
		switch {
		case r.Event == Trust:
			hold.Trusts = append(hold.Trusts, *r)
		case r.Result == Failed:
			hold.bad = r
		case hold.Notice == nil:
			hold.Notice = r
		}
	case Close:
		h.closes[r.Proc] = r.At
	case Kill:
		h.kills[r.Proc] = r.At
	case Stop:
		h.stops[r.Proc] = append(h.stops[r.Proc], span{r.At, never})
	case Cont:
		if s := h.stops[r.Proc]; len(s) > 0 {
			s[len(s)-1].to = r.At
		}
	case Mute:
	default:
		return fmt.Errorf("event %q", r.Event)
	}
	return nil
}

func (h *History) begin(op *Op, holds map[string]*Hold) error {
	r := op.Return
	if r.Hold == "" || holds[r.Hold] != nil {
		return fmt.Errorf("hold %q is there already, or has no ID", r.Hold)
	}
	hold := &Hold{
		ID: r.Hold, Name: r.Name, Proc: r.Proc, Token: r.Token,
		Called: op.Call.At, Start: r.At, Lock: *r, outer: holds[r.Root],
	}
	holds[hold.ID] = hold
	h.Holds = append(h.Holds, hold)
	return nil
}

// stopped is how long proc stood still between from and to.
func (h *History) stopped(proc string, from, to int64) int64 {
	var total int64
	for _, s := range h.stops[proc] {
		total += max(0, min(s.to, to)-max(s.from, from))
	}
	return total
}

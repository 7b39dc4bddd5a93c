package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	longestClaim = int64(500 * time.Millisecond)
	givingBack   = int64(50 * time.Millisecond)
	longestTTL   = int64(time.Second) // of a lease whose record does not say
)

// checkIdle finds waiters that waited longer than limit while nobody held what they waited for, and nothing explains that:
// neither a hold that ended without a release and lives at the server for its TTL, nor a hand-over that was not
// taken up, nor a fault. So a wait is bounded by the holders before it, their TTLs, and the limit.
func checkIdle(h *History, limit time.Duration) []Violation {
	var found []Violation
	h.eachIdle(func(op *Op, idle int64) {
		if idle > int64(limit) {
			found = append(found, Violation{
				Rule: RuleIdle, Name: op.Call.Name, Records: []Record{op.Call, *op.Return},
				Text: fmt.Sprintf("one waited %v, %v of which nobody held it", time.Duration(op.Return.At-op.Call.At), time.Duration(idle)),
			})
		}
	})
	return found
}

// eachIdle tells of every operation that stood in a line how much of its wait nothing explains.
func (h *History) eachIdle(tell func(op *Op, idle int64)) {
	busy := h.busy()
	for _, op := range h.Ops {
		call := op.Call
		if call.Kind != Lock || call.Polls || call.Name == "" || op.Return == nil {
			continue
		}
		idle := op.Return.At - call.At
		at := call.At
		for _, s := range busy[call.Name] {
			if from, to := max(s.from, at), min(s.to, op.Return.At); from < to {
				idle -= to - from
				at = to
			}
		}
		if idle > 0 {
			tell(op, idle)
		}
	}
}

// busy are the times, by name and in order, in which it was held or the server may have taken it for held.
func (h *History) busy() map[string][]span {
	spans := map[string][]span{}
	add := func(name string, from, to int64) { spans[name] = append(spans[name], span{from, to}) }
	users := map[string]map[string][]span{} // by name and process: when it held or asked
	uses := func(name, proc string, from, to int64) {
		if users[name] == nil {
			users[name] = map[string][]span{}
		}
		users[name][proc] = append(users[name][proc], span{from, to})
	}
	end := h.Records[len(h.Records)-1].At
	for _, hold := range h.Holds {
		ttl := cmp.Or(hold.asked.TTL, longestTTL)
		to := min(hold.End, end) + ttl
		for _, op := range hold.Releases {
			if op.Return != nil && op.Return.Result == OK {
				to = op.Return.At
				break
			}
			to = max(to, op.Call.At+ttl)
		}
		to = max(to, hold.Start+hold.asked.Min)
		add(hold.Name, min(hold.Start, hold.End), to)
		uses(hold.Name, hold.Proc, hold.Called, to)
	}
	for _, op := range h.Ops {
		if !op.Call.Kind.Holds() {
			continue
		}
		names := []string{op.Call.Name}
		if op.Call.Name == "" {
			names = op.Call.Names
		}
		for _, name := range names {
			if op.Call.Type == Group && op.Call.Kind == Lock && op.Return != nil {
				add(name, op.Call.At, op.Return.At) // it may hold this one while it waits for another
			}
			switch killed := h.kills[op.Call.Proc]; {
			case op.Return == nil && killed > 0:
				add(name, killed, killed+longestTTL) // what it may have been granted
				uses(name, op.Call.Proc, op.Call.At, killed)
			case op.Return != nil:
				uses(name, op.Call.Proc, op.Call.At, op.Return.At)
				if op.Return.Result != OK && op.Return.Result != Held {
					// It may have been granted at that moment, and is given back at once, if nothing is in the way.
					back := givingBack
					if h.troubled(op.Call.Proc, op.Return.At, op.Return.At+longestClaim, 0) {
						back = longestClaim
					}
					add(name, op.Return.At, op.Return.At+back)
				}
			}
		}
	}
	for name := range users {
		for _, stood := range [][]span{h.stops[Server], h.stood(Server, felt)} {
			for _, s := range stood {
				add(name, s.from, s.to+longestTTL)
			}
		}
		for _, at := range h.cuts {
			add(name, at, at+longestTTL)
		}
		for proc, used := range users[name] {
			for _, faults := range [][]span{h.stops[proc], h.stood(proc, felt), h.mutes[slotOf(proc)]} {
				for _, f := range faults {
					if slices.ContainsFunc(used, func(u span) bool { return u.from < f.to && f.from < u.to+longestTTL }) {
						add(name, f.from, f.to+longestTTL)
					}
				}
			}
		}
	}
	for name := range spans {
		slices.SortFunc(spans[name], func(a, b span) int { return cmp.Compare(a.from, b.from) })
	}
	return spans
}

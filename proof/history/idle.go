package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

const (
	longestClaim = int64(500 * time.Millisecond)
	givingBack   = int64(50 * time.Millisecond)
	longestTTL   = int64(time.Second) // of a lease whose record does not say
)

// checkIdle finds waiters that waited longer than limit while nobody held what they waited for, and
// nothing explains that: neither a hold that ended without a release and lives at the server for
// its TTL, nor a hand-over that was not taken up, nor a fault. So a wait is bounded by the holders
// before it, their TTLs, and the limit.
func checkIdle(h *History, limit time.Duration) []Violation {
	var found []Violation
	busy := h.busyTimes()
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
		if idle > int64(limit) {
			found = append(found, violation(judge.Idle, call.Name, op.records(),
				"one waited %v, %v of which nobody held it",
				time.Duration(op.Return.At-call.At), time.Duration(idle)))
		}
	}
	return found
}

// A usage is the times, by name, in which it was held or the server may have taken it for held.
type usage struct {
	busy  map[string][]span
	users map[string]map[string][]span // by name and process: when it held or asked
}

func (u *usage) addBusy(name string, from, to int64) {
	u.busy[name] = append(u.busy[name], span{from, to})
}

func (u *usage) addUse(name, proc string, from, to int64) {
	if u.users[name] == nil {
		u.users[name] = map[string][]span{}
	}
	u.users[name][proc] = append(u.users[name][proc], span{from, to})
}

// busyTimes returns the times of a usage, in order.
func (h *History) busyTimes() map[string][]span {
	u := &usage{map[string][]span{}, map[string]map[string][]span{}}
	end := h.Records[len(h.Records)-1].At
	for _, hold := range h.Holds {
		to := hold.keptUntil(end)
		u.addBusy(hold.Name, min(hold.Start, hold.End), to)
		u.addUse(hold.Name, hold.Proc, hold.Called, to)
	}
	for _, op := range h.Ops {
		if !op.Call.Kind.Holds() {
			continue
		}
		for _, name := range op.Call.names() {
			h.addAsked(u, op, name)
		}
	}
	h.addFaults(u)
	for name := range u.busy {
		slices.SortFunc(u.busy[name], func(a, b span) int { return cmp.Compare(a.from, b.from) })
	}
	return u.busy
}

// keptUntil returns until when the server may keep a hold: its release, or its TTL after it ended
// without one.
func (hold *Hold) keptUntil(end int64) int64 {
	ttl := cmp.Or(hold.asked.TTL, longestTTL)
	to := min(hold.End, end) + ttl
	for _, op := range hold.Releases {
		if op.Return != nil && op.Return.Result == OK {
			to = op.Return.At
			break
		}
		to = max(to, op.Call.At+ttl)
	}
	return max(to, hold.Start+hold.asked.Min)
}

// addAsked adds the times in which a call may have held a name that it did not get, or not yet.
func (h *History) addAsked(u *usage, op *Op, name string) {
	proc := op.Call.Proc
	if op.Return == nil {
		if killed := h.kills[proc]; killed > 0 {
			u.addBusy(name, killed, killed+longestTTL) // what it may have been granted
			u.addUse(name, proc, op.Call.At, killed)
		}
		return
	}
	back := op.Return.At
	if op.Call.Type == Group && op.Call.Kind == Lock {
		u.addBusy(name, op.Call.At, back) // it may hold this one while it waits for another
	}
	u.addUse(name, proc, op.Call.At, back)
	if op.Return.Result == OK || op.Return.Result == Held {
		return
	}
	// It may have been granted at that moment, and is given back at once, if nothing is in the way.
	long := givingBack
	if h.isTroubled(proc, back, back+longestClaim, 0) {
		long = longestClaim
	}
	u.addBusy(name, back, back+long)
}

// addFaults adds the times in which the server stood still or cut its connections, or a process did
// that held a name or asked for it.
func (h *History) addFaults(u *usage) {
	for name := range u.users {
		for _, stood := range [][]span{h.stops[Server], h.longStalls(Server, felt)} {
			for _, s := range stood {
				u.addBusy(name, s.from, s.to+longestTTL)
			}
		}
		for _, at := range h.cuts {
			u.addBusy(name, at, at+longestTTL)
		}
		for proc, used := range u.users[name] {
			for _, f := range slices.Concat(h.stops[proc], h.longStalls(proc, felt), h.mutes[slotName(proc)]) {
				if slices.ContainsFunc(used, func(u span) bool { return u.from < f.to && f.from < u.to+longestTTL }) {
					u.addBusy(name, f.from, f.to+longestTTL)
				}
			}
		}
	}
}

package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

const (
	// joining is how long after its call a waiter surely stands in the queue.
	joining = int64(150 * time.Millisecond)

	// riding is how long after the grant to one goroutine of a process others of it may get in
	// without standing in the queue: the slice, and what a busy machine adds to it.
	riding = int64(60 * time.Millisecond)

	// passes are how often a waiter may be passed by one that came later: not at all, but a busy
	// machine moves calls and returns away from what the server saw, and a waiter whose connection
	// broke is passed over until it is back.
	passes = 3

	// felt is how long one must have stood still by itself to come late into the queue, or to keep
	// others waiting; a request that is answered in time or not may be late by less.
	felt = int64(50 * time.Millisecond)
)

// checkOrder finds a waiter that stood in the server's queue itself and was passed again and again
// by later callers: a writer by readers, a large request by small ones, any caller by any. It looks
// at waits during which nothing troubled the process or the server.
func checkOrder(h *History) []Violation {
	var found []Violation
	names := groupHolds(h.Holds)
	for _, op := range h.Ops {
		call := op.Call
		if call.Kind != Lock || !call.Queues || call.Root != "" || op.Return == nil || op.Return.At-call.At < joining ||
			h.isTroubled(call.Proc, call.At, op.Return.At, felt) {
			continue
		}
		if passed := op.passedBy(names[call.Name]); len(passed) > passes {
			found = append(found, violation(judge.Order, call.Name, append(recordsOf(passed...), op.records()...),
				"%d that came later passed one of %s in the queue", len(passed), call.Proc))
		}
	}
	return found
}

// passedBy returns the holds of later callers that began while a caller waited, one for each token.
// holds are of one name, in the order of their begin.
func (op *Op) passedBy(holds []*Hold) (passed []*Hold) {
	wait := judge.Wait{Called: op.Call.At, Returned: op.Return.At}
	claim := judge.Claim{Owner: op.Call.Owner, Shares: op.Call.Shares}
	tokens := map[int64]bool{}
	for i, hold := range holds {
		if hold.Start >= op.Return.At {
			break
		}
		if wait.PassedBy(judge.Wait{Called: hold.Called, Returned: hold.Start}, joining, 0) &&
			claim.Contends(hold.Claim) &&
			hold.Root == hold.ID && !tokens[hold.Token] && !skipsQueue(hold, holds[:i]) {
			tokens[hold.Token] = true
			passed = append(passed, hold)
		}
	}
	return passed
}

// skipsQueue reports whether the hold had not to stand in the queue: another of its process had
// been let in just before, or one of its owner holds.
func skipsQueue(hold *Hold, earlier []*Hold) bool {
	for _, other := range earlier {
		switch {
		case other.Root == hold.Root:
		case other.Proc == hold.Proc && (other.Token == hold.Token || !hold.asked.Queues &&
			other.Start > hold.Start-riding):
			return true
		case hold.Owner != "" && other.Owner == hold.Owner && other.End > hold.Called:
			return true
		}
	}
	return false
}

// slotName returns the name of a process without its life.
func slotName(proc string) string {
	slot, _, _ := strings.Cut(proc, ".")
	return slot
}

// isTroubled reports whether a process, its network or the server stood still between from and to,
// or connections were cut, or so shortly before that it may still be felt. A stop by itself lasted
// for least.
func (h *History) isTroubled(proc string, from, to, least int64) bool {
	from -= int64(time.Second)
	if h.isStalled(proc, from, to, least) || h.isStalled(Server, from, to, least) {
		return true
	}
	for _, spans := range [][]span{h.stops[proc], h.stops[Server], h.mutes[slotName(proc)]} {
		if slices.ContainsFunc(spans, func(s span) bool { return s.from < to && from < s.to }) {
			return true
		}
	}
	return slices.ContainsFunc(h.cuts, func(at int64) bool { return from < at && at < to })
}

// isStalled reports whether one stood still by itself between from and to, for so long at least.
func (h *History) isStalled(proc string, from, to, least int64) bool {
	all := h.stalls[proc] // one after the other
	after, _ := slices.BinarySearchFunc(all, to, func(s span, to int64) int { return cmp.Compare(s.from, to) })
	for i := after - 1; i >= 0 && all[i].to > from; i-- {
		if all[i].to-all[i].from >= least {
			return true
		}
	}
	return false
}

// longStalls returns the times in which one stood still by itself, for so long at least.
func (h *History) longStalls(proc string, least int64) (spans []span) {
	for _, s := range h.stalls[proc] {
		if s.to-s.from >= least {
			spans = append(spans, s)
		}
	}
	return spans
}

// Disturbed reports whether a process, its network or the server stood still while its client was
// closed: that tries once more what it has not given back, for a moment.
func (h *History) Disturbed(proc string) bool {
	const longest = int64(5 * time.Second)
	at, closed := h.closes[proc]
	return closed && h.isTroubled(proc, at, at+longest, 0)
}

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

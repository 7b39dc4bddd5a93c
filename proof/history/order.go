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

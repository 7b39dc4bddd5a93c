package history

import (
	"slices"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// forgotten is how long after the return of a Resize without an answer it may still take effect.
const forgotten = int64(5e9)

// checkPermits adds up what trusted holders have of a semaphore, whenever one begins. Their sum
// fitted when the last of them was granted, which is the one with the largest token: into the
// permits that its handle named, as the server refuses others, or that a Resize set while it
// waited. A hold that follows may have fitted into the most that there ever were. A hold that
// waited for more than there are now is alone. holds are of one name, in the order of their begin.
func checkPermits(holds []*Hold, resizes []*Op) []Violation {
	var found []Violation
	var trusted []*Hold
	for _, hold := range holds {
		if !hold.isTrusted() || hold.Weight == 0 {
			continue
		}
		trusted = slices.DeleteFunc(trusted, func(other *Hold) bool { return other.End <= hold.Start })
		trusted = append(trusted, hold)
		var sum int64
		last := hold
		for _, other := range trusted {
			sum += other.Weight
			if other.Token > last.Token {
				last = other
			}
		}
		if most := permitLimit(last, holds, resizes); sum > most && len(trusted) > 1 {
			found = append(found, violation(judge.Permits, hold.Name, recordsOf(trusted...),
				"%d permits were trusted when %s began, of at most %d", sum, hold.ID, most))
		}
	}
	return found
}

// permitLimit returns the most that there may have been when the hold was granted.
func permitLimit(hold *Hold, holds []*Hold, resizes []*Op) int64 {
	most := hold.asked.Size
	for _, op := range resizes {
		end := op.Call.At + forgotten
		if op.Return != nil && op.Return.Result == OK {
			end = op.Return.At
		} else if op.Return != nil {
			end = op.Return.At + forgotten
		}
		if op.Call.At < hold.Start && (hold.Called < end || hold.Follows) {
			most = max(most, op.Call.Weight)
		}
	}
	for _, other := range holds {
		if hold.Follows && other.Called < hold.Start {
			most = max(most, other.asked.Size)
		}
	}
	return most
}

// markFollowers finds the holds whose process may have learned of another number of permits before
// it asked for them. A process asks with that number for all callers that wait behind one another,
// with handles of one number, weight and TTL. A caller that polls learns of another number by
// itself.
func (h *History) markFollowers() {
	type pool struct {
		proc, name        string
		size, weight, ttl int64
	}
	calls := map[pool][]*Op{}
	poolOf := func(call Record) pool { return pool{call.Proc, call.Name, call.Size, call.Weight, call.TTL} }
	pooled := func(call Record) bool {
		return call.Type == Semaphore && call.Kind == Lock && !call.Queues && !call.Polls
	}
	for _, op := range h.Ops {
		if pooled(op.Call) {
			calls[poolOf(op.Call)] = append(calls[poolOf(op.Call)], op)
		}
	}
	for _, hold := range h.Holds {
		call := hold.asked
		hold.Follows = call.Type == Semaphore && call.Polls
		if !pooled(call) {
			continue
		}
		for _, op := range calls[poolOf(call)] {
			if op.Call.At >= hold.Start {
				break
			}
			if op.Call.Op != call.Op && (op.Return == nil || op.Return.At > hold.Called) {
				hold.Follows = true
			}
		}
	}
}

package history

import (
	"slices"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// checkLeaders finds answers of an election that contradict a leader who was trusted from before
// the question until after the answer.
func checkLeaders(holds []*Hold, asked []*Op) []Violation {
	var found []Violation
	for _, op := range asked {
		if op.Return == nil || op.Return.Result != OK && op.Return.Result != NoLeader {
			continue
		}
		for _, hold := range holds {
			if hold.Start < op.Call.At && hold.End > op.Return.At && hold.Token != op.Return.Token {
				found = append(found, violation(judge.Leader, hold.Name, append(hold.records(), op.records()...),
					"%s (token %d) led all the time, and the answer was %s, token %d",
					hold.ID, hold.Token, op.Return.Result, op.Return.Token))
				break
			}
		}
	}
	return found
}

// checkLatches finds latches that were open although too few can have counted down since they were
// set, and those that were set while they were set.
func checkLatches(h *History) []Violation {
	var found []Violation
	sets, downs := h.OpsOf(Set), h.OpsOf(CountDown)
	for _, op := range h.Ops {
		name := op.Call.Name
		if op.foundOpen() && !mayBeOpen(sets[name], downs[name], op.Return.At) {
			found = append(found, violation(judge.Latch, name, op.records(),
				"it was open although too few had counted down since any Set"))
		}
		again := func(first *Op) bool {
			return op.setsWithin(first) && !mayBeOpenAfter(first, downs[name], op.Return.At)
		}
		if op.Call.Kind == Set && slices.ContainsFunc(sets[name], again) {
			found = append(found, violation(judge.Latch, name, op.records(),
				"it was set although it was set, and too few had counted down"))
		}
	}
	return found
}

// foundOpen reports whether an operation found the latch open.
func (op *Op) foundOpen() bool {
	return op.Return != nil && op.Return.Result == OK &&
		(op.Call.Kind == Wait || op.Call.Kind == Count && op.Return.Weight == 0)
}

// setsWithin reports whether a Set succeeded within the life of one before it.
func (op *Op) setsWithin(first *Op) bool {
	done := func(op *Op) bool { return op.Return != nil && op.Return.Result == OK }
	return done(op) && done(first) && first.Return.At < op.Call.At && op.Return.At < first.Call.At+first.Call.TTL
}

func mayBeOpen(sets, downs []*Op, by int64) bool {
	return slices.ContainsFunc(sets, func(set *Op) bool {
		return set.Call.At < by && (set.Return == nil || set.Return.Result != Held) && mayBeOpenAfter(set, downs, by)
	})
}

// mayBeOpenAfter reports whether as many as were set may have counted down by a moment.
func mayBeOpenAfter(set *Op, downs []*Op, by int64) bool {
	left := set.Call.Weight
	for _, down := range downs {
		if down.Call.At >= by || left <= 0 {
			break
		}
		if down.Return == nil || down.Return.Result == OK && down.Return.At > set.Call.At ||
			down.Return.Result != OK && down.Return.Result != NotHeld {
			left--
		}
	}
	return left <= 0
}

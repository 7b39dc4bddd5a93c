package history

import (
	"fmt"
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
				found = append(found, Violation{
					Rule: judge.Leader, Name: hold.Name, Records: append(hold.records(), op.Call, *op.Return),
					Text: fmt.Sprintf("%s (token %d) led all the time, and the answer was %s, token %d",
						hold.ID, hold.Token, op.Return.Result, op.Return.Token),
				})
				break
			}
		}
	}
	return found
}

// checkLatch finds a latch that was open although too few can have counted down since it was set,
// and one that was set while it was set. ops are all of one name.
func checkLatch(ops opList) []Violation {
	var found []Violation
	sets, downs := ops.ofKind(Set), ops.ofKind(CountDown)
	report := func(op *Op, text string) {
		found = append(found, Violation{Rule: judge.Latch, Name: op.Call.Name, Records: []Record{op.Call, *op.Return},
			Text: text})
	}
	for _, op := range ops {
		if op.foundOpen() && !mayBeOpen(sets, downs, op.Return.At) {
			report(op, "it was open although too few had counted down since any Set")
		}
	}
	for i, second := range sets {
		again := func(first *Op) bool {
			return second.setsWithin(first) && !mayBeOpenAfter(first, downs, second.Return.At)
		}
		if slices.ContainsFunc(sets[:i], again) {
			report(second, "it was set although it was set, and too few had counted down")
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
	for _, set := range sets {
		if set.Call.At < by && (set.Return == nil || set.Return.Result != Held) && mayBeOpenAfter(set, downs, by) {
			return true
		}
	}
	return false
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

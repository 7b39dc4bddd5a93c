package linear

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/proof/history"
)

// A Verdict is what became of the names of a history.
type Verdict struct {
	Fits    []string // one order explains all
	Broken  []string // none does
	Unknown []string // there was not enough time to tell
	Steps   int      // that were put in order
}

// String is the verdict in a line.
func (v Verdict) String() string {
	return fmt.Sprintf("%d steps on %d names fit the model; broken: %q, too many to tell: %q", v.Steps, len(v.Fits), v.Broken, v.Unknown)
}

// Check looks at each name for at most so long.
func Check(h *history.History, most time.Duration) Verdict {
	var verdict Verdict
	steps := stepsOf(h)
	model := porcupine.NondeterministicModel{Init: initial, Step: next, Equal: equal}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		verdict.Steps += len(steps[name])
		switch porcupine.CheckOperationsTimeout(model.ToModel(), steps[name], most) {
		case porcupine.Ok:
			verdict.Fits = append(verdict.Fits, name)
		case porcupine.Illegal:
			verdict.Broken = append(verdict.Broken, name)
		default:
			verdict.Unknown = append(verdict.Unknown, name)
		}
	}
	return verdict
}

// forgotten is how long after its return a request without an answer may still take effect.
const forgotten = int64(5e9)

// stepsOf are the operations of each name as the model takes them.
func stepsOf(h *history.History) map[string][]porcupine.Operation {
	steps := map[string][]porcupine.Operation{}
	add := func(name string, from, to int64, s step) {
		steps[name] = append(steps[name], porcupine.Operation{Input: s, Call: from, Return: to})
	}
	resizes := map[string][]history.Op{}
	for _, op := range h.Ops {
		if op.Call.Kind == history.Resize {
			resizes[op.Call.Name] = append(resizes[op.Call.Name], *op)
		}
	}
	for _, hold := range h.Holds {
		if hold.Start >= hold.End {
			continue
		}
		m := member{
			id: hold.ID, root: hold.Root, owner: hold.Owner, proc: hold.Proc, token: hold.Token, weight: hold.Weight,
			shares: hold.Shares,
		}
		size, crossed := hold.Lock.Size, false
		for _, op := range resizes[hold.Name] {
			crossed = crossed || op.Call.At < hold.Start && hold.Called < until(op)
		}
		add(hold.Name, hold.Called, hold.Start, step{verb: enter, member: m, entry: hold.Root != hold.ID, n: size, unsure: crossed, follows: hold.Follows})
		if !hold.Shares && hold.Exclusive < hold.End {
			add(hold.Name, max(hold.Exclusive, hold.Start), max(hold.Exclusive, hold.Start), step{verb: share, member: m})
		}
		if hold.End < math.MaxInt64 {
			add(hold.Name, hold.End, hold.End, step{verb: leave, member: m})
		}
	}
	long := h.Records[len(h.Records)-1].At - h.Records[0].At
	for _, op := range h.Ops {
		call, result := op.Call, history.Result("")
		if op.Return != nil {
			result = op.Return.Result
		}
		s := step{n: call.Weight, unsure: result != history.OK}
		switch call.Kind {
		case history.Resize:
			if s.verb = resize; result == history.Refused {
				continue
			}
		case history.Set, history.CountDown, history.Count, history.Wait:
			if call.TTL <= long {
				continue // it goes away by itself, at a moment of which nothing is known
			}
			var told bool
			if s, told = latchStep(call.Kind, op, result); !told {
				continue
			}
		default:
			continue
		}
		add(call.Name, call.At, until(*op), s)
	}
	return steps
}

// latchStep is what the model makes of an operation on a latch; false: nothing.
func latchStep(kind history.Kind, op *history.Op, result history.Result) (step, bool) {
	s := step{n: op.Call.Weight, unsure: true}
	switch {
	case kind == history.Set && result == history.Held:
		return step{verb: isSet}, true
	case kind == history.CountDown && result == history.NotHeld, kind == history.Count && result == history.NotHeld:
		return step{verb: isUnset}, true
	case kind == history.Set:
		s.verb = set
	case kind == history.CountDown:
		s.verb = countDown
	case result != history.OK:
		return s, false
	case kind == history.Wait:
		s.verb, s.n = counts, 0
	default:
		s.verb, s.n = counts, op.Return.Weight
	}
	s.unsure = result != history.OK
	return s, true
}

// until is when an operation has taken effect, or never will.
func until(op history.Op) int64 {
	switch {
	case op.Return == nil:
		return op.Call.At + op.Call.Limit + forgotten
	case op.Return.Result == history.OK || op.Return.Result == history.Held || op.Return.Result == history.NotHeld:
		return op.Return.At
	}
	return op.Return.At + forgotten
}

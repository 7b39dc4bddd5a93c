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
	return fmt.Sprintf("%d steps on %d names fit the model; broken: %q, too many to tell: %q", v.Steps, len(v.Fits),
		v.Broken, v.Unknown)
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

// steps are the operations of each name as the model takes them.
type steps map[string][]porcupine.Operation

func (s steps) add(name string, from, to int64, what step) {
	s[name] = append(s[name], porcupine.Operation{Input: what, Call: from, Return: to})
}

func stepsOf(h *history.History) steps {
	s := steps{}
	s.addHolds(h)
	long := h.Records[len(h.Records)-1].At - h.Records[0].At
	for _, op := range h.Ops {
		if what, told := opStep(op, long); told {
			s.add(op.Call.Name, op.Call.At, until(op), what)
		}
	}
	return s
}

// addHolds adds the begin of each trusted hold, its downgrade and its end.
func (s steps) addHolds(h *history.History) {
	resizes := h.OpsOf(history.Resize)
	for _, hold := range h.Holds {
		if hold.Start >= hold.End {
			continue
		}
		m := member{Claim: hold.Claim, id: hold.ID, proc: hold.Proc, token: hold.Token}
		crossed := slices.ContainsFunc(resizes[hold.Name], func(op *history.Op) bool {
			return op.Call.At < hold.Start && hold.Called < until(op)
		})
		s.add(hold.Name, hold.Called, hold.Start, step{
			verb: enter, member: m, entry: hold.Root != hold.ID,
			n: hold.Lock.Size, unsure: crossed, follows: hold.Follows,
		})
		if !hold.Shares && hold.Exclusive < hold.End {
			at := max(hold.Exclusive, hold.Start)
			s.add(hold.Name, at, at, step{verb: share, member: m})
		}
		if hold.End < math.MaxInt64 {
			s.add(hold.Name, hold.End, hold.End, step{verb: leave, member: m})
		}
	}
}

// opStep is what the model makes of an operation that makes no hold; false: nothing. A latch whose
// TTL is over within the time of the history goes away at a moment of which nothing is known.
func opStep(op *history.Op, long int64) (step, bool) {
	result := history.Result("")
	if op.Return != nil {
		result = op.Return.Result
	}
	switch op.Call.Kind {
	case history.Resize:
		return step{verb: resize, n: op.Call.Weight, unsure: result != history.OK}, result != history.Refused
	case history.Set, history.CountDown, history.Count, history.Wait:
		if op.Call.TTL > long {
			return latchStep(op.Call.Kind, op, result)
		}
	}
	return step{}, false
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
func until(op *history.Op) int64 {
	switch {
	case op.Return == nil:
		return op.Call.At + op.Call.Limit + forgotten
	case op.Return.Result == history.OK || op.Return.Result == history.Held || op.Return.Result == history.NotHeld:
		return op.Return.At
	}
	return op.Return.At + forgotten
}

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

// steps are the operations of each name as the model takes them.
type steps map[string][]porcupine.Operation

func (s steps) add(name string, from, to int64, what step) {
	s[name] = append(s[name], porcupine.Operation{Input: what, Call: from, Return: to})
}

// stepsOf returns the begin of each trusted hold, its downgrade and its end.
func stepsOf(h *history.History) steps {
	s := steps{}
	for _, hold := range h.Holds {
		if hold.Start >= hold.End {
			continue
		}
		m := member{Claim: hold.Claim, id: hold.ID, proc: hold.Proc, token: hold.Token}
		s.add(hold.Name, hold.Called, hold.Start, step{enter, m, hold.Root != hold.ID, hold.Lock.Size})
		if !hold.Shares && hold.Exclusive < hold.End {
			at := max(hold.Exclusive, hold.Start)
			s.add(hold.Name, at, at, step{verb: share, member: m})
		}
		if hold.End < math.MaxInt64 {
			s.add(hold.Name, hold.End, hold.End, step{verb: leave, member: m})
		}
	}
	return s
}

package linear

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// A verb is what a step does.
type verb int

const (
	enter verb = iota
	share
	leave
)

// A step is an operation of which the model says whether it may be the next.
type step struct {
	verb
	member
	entry   bool  // into a lease that is there
	permits int64 // that there are
}

// A member is a hold.
type member struct {
	judge.Claim
	id, proc string
	token    int64
}

// A state is one name at one moment. It is not changed once it is made.
type state struct {
	members []member
	tokens  judge.Tokens
}

func initial() []any { return []any{state{}} }

func equal(a, b any) bool {
	x, y := a.(state), b.(state)
	return x.tokens == y.tokens && slices.Equal(x.members, y.members)
}

// next are the states that a step may lead to: none, when it cannot be the next.
func next(from, input, _ any) []any {
	was, s := from.(state), input.(step)
	now := was
	switch s.verb {
	case enter:
		return enters(was, s)
	case share:
		now.members = slices.Clone(was.members)
		for i, m := range now.members {
			now.members[i].Shares = m.Shares || m.id == s.id
		}
	case leave:
		now.members = slices.DeleteFunc(slices.Clone(was.members), func(m member) bool { return m.id == s.id })
	}
	return []any{now}
}

// enters lets a hold in, if nobody excludes it and its token is in order.
func enters(was state, s step) []any {
	joined := false
	for _, m := range was.members {
		if m.Excludes(s.Claim) {
			return nil
		}
		joined = joined || m.Shares && s.Shares && m.token == s.token && m.proc == s.proc
	}
	if !s.entry && !joined && !was.tokens.Grow(s.token, s.Shares) {
		return nil
	}
	now := was
	now.members = append(slices.Clone(was.members), s.member)
	slices.SortFunc(now.members, func(a, b member) int { return strings.Compare(a.id, b.id) })
	now.tokens = was.tokens.With(s.token, s.Shares)
	var sum int64
	for _, m := range now.members {
		sum += m.Weight
	}
	if s.Weight > 0 && sum > s.permits {
		return nil
	}
	return []any{now}
}

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

package linear

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// A verb is what a step does.
type verb int

const (
	enter verb = iota
	share
	leave
	resize
	set
	countDown
	counts // a latch: so many have yet to count down
	isSet
	isUnset
)

// A step is an operation of which the model says whether it may be the next.
type step struct {
	verb
	member
	entry  bool // into a lease that is there
	unsure bool // it may have had no effect; of enter: a Resize may have come between
	// Of enter: its process may have learned of any other number of permits.
	follows bool
	n       int64
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
	permits int64 // or unknown
	latch   int64 // what is left to count down, 0: open, -1: not set
}

// unknown is a number of permits that a process has learned and that no other handle has named yet.
const unknown = -1

func initial() []any { return []any{state{latch: -1}} }

func equal(a, b any) bool {
	x, y := a.(state), b.(state)
	return x.tokens == y.tokens && x.permits == y.permits && x.latch == y.latch && slices.Equal(x.members, y.members)
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
	case resize:
		if now.permits = s.n; s.unsure || len(was.members) == 0 {
			return []any{was, now}
		}
	default:
		return latch(was, s)
	}
	return []any{now}
}

// latch is next for the steps of a latch.
func latch(was state, s step) []any {
	now, may := was, true
	switch s.verb {
	case set:
		now.latch, may = s.n, was.latch <= 0
	case countDown:
		now.latch, may = max(was.latch-1, 0), was.latch >= 0
	case counts:
		may = was.latch == s.n
	case isSet:
		may = was.latch > 0
	case isUnset:
		may = was.latch < 0
	}
	switch {
	case s.unsure && (s.verb == set || s.verb == countDown):
		return []any{was, now}
	case !may:
		return nil
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
	if s.Weight == 0 {
		return []any{now}
	}
	return permits(was, now, s)
}

// permits are the states after a hold entered that takes some. The server refuses a handle that
// names another number of permits, unless it stood in the queue before a Resize or its process has
// learned of that number.
func permits(was, now state, s step) []any {
	named := now
	named.permits = s.n
	if len(was.members) == 0 {
		switch {
		case s.follows:
			now.permits = unknown // the number of before, that of its handle, or any other
			return []any{now}
		case s.unsure:
			return []any{now, named}
		}
		return []any{named}
	}
	var sum int64
	for _, m := range now.members {
		sum += m.Weight
	}
	unsure := s.unsure || s.follows
	switch {
	case was.permits == unknown && unsure:
		return []any{now}
	case was.permits == unknown && sum <= s.n:
		return []any{named}
	case was.permits == unknown || sum > was.permits || s.n != was.permits && !unsure:
		return nil
	}
	return []any{now}
}

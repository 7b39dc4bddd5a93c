package linear

import "slices"

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
	id, root, owner, proc string
	token, weight         int64
	shares                bool
}

// A state is one name at one moment. It is not changed once it is made.
type state struct {
	members []member
	top     int64 // the largest token
	writer  int64 // the largest of one that does not share
	permits int64 // or unknown
	latch   int64 // what is left to count down, 0: open, -1: not set
}

// unknown is a number of permits that a process has learned and that no other handle has named yet.
const unknown = -1

func initial() []any { return []any{state{latch: -1}} }

func equal(a, b any) bool {
	x, y := a.(state), b.(state)
	return x.top == y.top && x.writer == y.writer && x.permits == y.permits && x.latch == y.latch && slices.Equal(x.members, y.members)
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
			now.members[i].shares = m.shares || m.id == s.id
		}
	case leave:
		now.members = slices.DeleteFunc(slices.Clone(was.members), func(m member) bool { return m.id == s.id })
	case resize:
		if now.permits = s.n; s.unsure || len(was.members) == 0 {
			return []any{was, now}
		}
	case set:
		if now.latch = s.n; s.unsure {
			return []any{was, now}
		}
		if was.latch > 0 {
			return nil
		}
	case countDown:
		if now.latch = max(was.latch-1, 0); s.unsure {
			return []any{was, now}
		}
		if was.latch < 0 {
			return nil
		}
	case counts:
		if was.latch != s.n {
			return nil
		}
	case isSet:
		if was.latch <= 0 {
			return nil
		}
	case isUnset:
		if was.latch >= 0 {
			return nil
		}
	}
	return []any{now}
}

// enters lets a hold in, if nobody excludes it and its token is in order.
func enters(was state, s step) []any {
	sum, joined := s.weight, false
	for _, m := range was.members {
		sum += m.weight
		joined = joined || m.shares && m.token == s.token && m.proc == s.proc
		if m.root == s.root || m.owner != "" && m.owner == s.owner || m.weight > 0 || m.shares && s.shares {
			continue
		}
		return nil
	}
	switch {
	case s.entry:
	case s.shares && (s.token > was.writer || joined):
	case !s.shares && s.token > was.top:
	default:
		return nil
	}
	now := was
	now.members = append(slices.Clone(was.members), s.member)
	slices.SortFunc(now.members, func(a, b member) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	if now.top = max(was.top, s.token); !s.shares {
		now.writer = max(was.writer, s.token)
	}
	if s.weight == 0 {
		return []any{now}
	}
	// The server refuses a handle that names another number, unless it stood in line before a Resize
	// or its process has learned of that number.
	named := now
	named.permits = s.n
	unsure := s.unsure || s.follows
	if len(was.members) > 0 {
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
	switch {
	case s.follows:
		now.permits = unknown // the number of before, that of its handle, or any other
		return []any{now}
	case s.unsure:
		return []any{now, named}
	}
	return []any{named}
}

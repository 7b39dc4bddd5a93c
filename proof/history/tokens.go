package history

import (
	"cmp"
	"fmt"
	"slices"
)

// checkTokens finds every hold whose token does not grow. The order of two grants is known where one lock had returned
// before the other was called, and where two holds that exclude each other were both trusted: the first to return
// was then the first to be granted. Readers of one process may share a hold, and its token, also one that was
// downgraded; so the tokens of readers grow past those of writers, not past each other's.
func checkTokens(holds []*Hold) []Violation {
	var found []Violation
	roots := map[string]*Hold{}
	first := map[int64]*Hold{} // by token
	reads := map[string]bool{} // the leases, by root, that are held to read, or have been
	for _, hold := range holds {
		reads[hold.Root] = reads[hold.Root] || hold.Shares || len(hold.downgrades) > 0
	}
	var firsts []*Hold // of each lease, without the entries into it
	for _, hold := range holds {
		if hold.Token <= 0 || hold.Token >= 1<<53 {
			found = append(found, tokenViolation(hold, hold, "is no token"))
		}
		if outer := roots[hold.Root]; outer != nil {
			if hold.Token != outer.Token {
				found = append(found, tokenViolation(outer, hold, "entered a lease and has another token than"))
			}
			continue
		}
		roots[hold.Root] = hold
		if other := first[hold.Token]; other != nil {
			if !hold.Shares || other.Proc != hold.Proc || !reads[other.Root] {
				found = append(found, tokenViolation(other, hold, "has the token of"))
			}
			continue
		}
		first[hold.Token] = hold
		firsts = append(firsts, hold)
	}
	found = append(found, fallen(firsts, func(hold *Hold) int64 { return hold.Called }, ordered)...)
	trusted := slices.DeleteFunc(slices.Clone(firsts), func(hold *Hold) bool { return !hold.trusted() || hold.Weight > 0 })
	return append(found, fallen(trusted, func(hold *Hold) int64 { return hold.Start }, excluding)...)
}

// A class is what decides whether the tokens of two holds must be in order.
type class struct {
	owner  string
	shares bool
}

func (hold *Hold) class() class { return class{hold.Owner, hold.Shares} }

// ordered tells whether a token must be larger if its call began after the other had returned.
func ordered(a, b class) bool { return !a.shares || !b.shares }

// excluding tells whether it must be if both are trusted.
func excluding(a, b class) bool {
	return ordered(a, b) && (a.owner == "" || a.owner != b.owner)
}

// fallen finds the holds whose token is smaller than that of one that had returned before the moment since of theirs, of
// those that matter to each other. holds are in the order of their return.
func fallen(holds []*Hold, since func(*Hold) int64, matter func(a, b class) bool) []Violation {
	var found []Violation
	tops := map[class]*Hold{} // the largest token returned so far
	later := slices.SortedStableFunc(slices.Values(holds), func(a, b *Hold) int { return cmp.Compare(since(a), since(b)) })
	returned := 0
	for _, hold := range later {
		for ; returned < len(holds) && holds[returned].Start < since(hold); returned++ {
			if top := tops[holds[returned].class()]; top == nil || holds[returned].Token > top.Token {
				tops[holds[returned].class()] = holds[returned]
			}
		}
		var top *Hold
		for c, other := range tops {
			if matter(c, hold.class()) && (top == nil || other.Token > top.Token) {
				top = other
			}
		}
		if top != nil && hold.Token < top.Token {
			found = append(found, tokenViolation(top, hold, "was granted later, and has a smaller token than"))
		}
	}
	return found
}

func tokenViolation(first, second *Hold, what string) Violation {
	records := stories(second)
	if first != second {
		records = stories(first, second)
	}
	return Violation{
		Rule: RuleToken, Name: second.Name, Records: records,
		Text: fmt.Sprintf("%s (token %d) %s %s (token %d)", second.ID, second.Token, what, first.ID, first.Token),
	}
}

package history

import (
	"cmp"
	"fmt"
	"slices"
)

// checkTokens finds every hold whose token does not grow. The order of two grants is known where one lock had returned
// before the other was called, and where both holds were trusted: the first to return was then the first to be granted.
func checkTokens(holds []*Hold) []Violation {
	var found []Violation
	roots := map[string]*Hold{}
	first := map[int64]*Hold{} // by token
	var firsts []*Hold         // of each lease, without the entries into it
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
			found = append(found, tokenViolation(other, hold, "has the token of"))
			continue
		}
		first[hold.Token] = hold
		firsts = append(firsts, hold)
	}
	found = append(found, fallen(firsts, func(hold *Hold) int64 { return hold.Called })...)
	trusted := slices.DeleteFunc(slices.Clone(firsts), func(hold *Hold) bool { return !hold.trusted() })
	return append(found, fallen(trusted, func(hold *Hold) int64 { return hold.Start })...)
}

// fallen finds the holds whose token is smaller than that of one that had returned before the moment since of theirs.
// holds are in the order of their return.
func fallen(holds []*Hold, since func(*Hold) int64) []Violation {
	var found []Violation
	var top *Hold // the largest token returned so far
	later := slices.SortedStableFunc(slices.Values(holds), func(a, b *Hold) int { return cmp.Compare(since(a), since(b)) })
	returned := 0
	for _, hold := range later {
		for ; returned < len(holds) && holds[returned].Start < since(hold); returned++ {
			if top == nil || holds[returned].Token > top.Token {
				top = holds[returned]
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

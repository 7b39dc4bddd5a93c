package history

import "github.com/holdfast-go/holdfast/proof/judge"

// checkTokens finds every hold whose token does not grow, as judge.Grant says, and every entry that
// has another token than its lease. holds are of one name, in the order of their begin.
func checkTokens(holds []*Hold) []Violation {
	var found []Violation
	roots := map[string]*Hold{}
	reads := map[string]bool{} // the leases, by root, that are held to read, or have been
	for _, hold := range holds {
		reads[hold.Root] = reads[hold.Root] || hold.lastClaim().Shares
	}
	var firsts []*Hold // of each lease, without the entries into it
	var grants []judge.Grant
	for _, hold := range holds {
		if !judge.IsToken(hold.Token) {
			found = append(found, tokenViolation(hold, hold, "is no token"))
		}
		if outer := roots[hold.Root]; outer != nil {
			if hold.Token != outer.Token {
				found = append(found, tokenViolation(outer, hold, "entered a lease and has another token than"))
			}
			continue
		}
		roots[hold.Root] = hold
		firsts = append(firsts, hold)
		grants = append(grants, judge.Grant{
			Claim: hold.Claim, Proc: hold.Proc, Joined: reads[hold.Root], Token: hold.Token,
			Called: hold.Called, Returned: hold.Start, Trusted: hold.isTrusted(),
		})
	}
	for _, f := range judge.Faults(grants) {
		found = append(found, tokenViolation(firsts[f.First], firsts[f.Second], f.Text))
	}
	return found
}

func tokenViolation(first, second *Hold, what string) Violation {
	records := recordsOf(second)
	if first != second {
		records = recordsOf(first, second)
	}
	return violation(judge.Token, second.Name, records,
		"%s (token %d) %s %s (token %d)", second.ID, second.Token, what, first.ID, first.Token)
}

package history

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// checkOverlap finds every hold that began while another was trusted that excludes it. holds are of
// one name, in the order of their begin.
func checkOverlap(holds []*Hold) []Violation {
	var found []Violation
	var trusted []*Hold // that reach into the present
	for _, hold := range holds {
		if !hold.isTrusted() {
			continue
		}
		trusted = slices.DeleteFunc(trusted, func(other *Hold) bool { return other.End <= hold.Start })
		var rival *Hold // of several, the one that reaches furthest
		for _, other := range trusted {
			if other.claimAt(hold.Start).Excludes(hold.Claim) && (rival == nil || other.End > rival.End) {
				rival = other
			}
		}
		if rival != nil {
			found = append(found, overlapViolation(rival, hold))
		}
		trusted = append(trusted, hold)
	}
	return found
}

func overlapViolation(first, second *Hold) Violation {
	both := min(first.End, second.End)
	if second.Shares {
		both = min(both, first.Exclusive)
	}
	return violation(judge.Overlap, second.Name, recordsOf(first, second),
		"%s (token %d) and %s (token %d) were both trusted for %v",
		first.ID, first.Token, second.ID, second.Token, time.Duration(both-second.Start))
}

// checkPermits adds up what trusted holders have of a semaphore, whenever one begins. holds are of
// one name, in the order of their begin.
func checkPermits(holds []*Hold) []Violation {
	var found []Violation
	var trusted []*Hold
	for _, hold := range holds {
		if !hold.isTrusted() || hold.Weight == 0 {
			continue
		}
		trusted = slices.DeleteFunc(trusted, func(other *Hold) bool { return other.End <= hold.Start })
		trusted = append(trusted, hold)
		var sum int64
		for _, other := range trusted {
			sum += other.Weight
		}
		if sum > hold.asked.Size {
			found = append(found, violation(judge.Permits, hold.Name, recordsOf(trusted...),
				"%d permits were trusted when %s began, of %d", sum, hold.ID, hold.asked.Size))
		}
	}
	return found
}

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

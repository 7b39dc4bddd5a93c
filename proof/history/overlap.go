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

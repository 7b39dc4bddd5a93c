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

// checkReleases finds releases reported done that were not: of a lease given back before, of one
// whose loss had been told, and of one after which another had been granted. holds are of one name,
// in the order of their begin.
func (h *History) checkReleases(holds []*Hold) []Violation {
	var found []Violation
	report := func(hold *Hold, what string, more ...Record) {
		found = append(found, violation(judge.Release, hold.Name, append(hold.records(), more...),
			"the release of %s (token %d) was reported done although %s", hold.ID, hold.Token, what))
	}
	for i, hold := range holds {
		for _, op := range hold.checks {
			if op.Return == nil || op.Return.Result != OK {
				continue
			}
			if heir := findSuccessor(hold, holds[i+1:], op.Call.At); heir != nil {
				found = append(found, violation(judge.Trust, hold.Name,
					append(hold.records(), op.Call, *op.Return, heir.Lock),
					"Check said that %s (token %d) is held although the lock was already %s's",
					hold.ID, hold.Token, heir.ID))
			}
		}
		done := 0
		for _, op := range hold.Releases {
			if op.Return == nil || op.Return.Result != OK {
				continue
			}
			done++
			switch {
			case done > 1:
				report(hold, "it had been given back before")
			case hold.Notice != nil && hold.Notice.At < op.Call.At:
				report(hold, "its loss had been told")
			default:
				if heir := findSuccessor(hold, holds[i+1:], op.Call.At); heir != nil {
					report(hold, "the lock was already "+heir.ID+"'s", heir.Lock)
				}
			}
		}
	}
	return found
}

// findSuccessor returns a hold with a larger token, of another lease that cannot be held beside
// this one, that had returned by the moment at.
func findSuccessor(hold *Hold, later []*Hold, at int64) *Hold {
	writes := !hold.Shares && len(hold.downgrades) == 0
	for _, other := range later {
		if other.Start >= at {
			return nil
		}
		if !other.Together(hold.Claim) && other.Token > hold.Token && other.Weight == 0 && (writes || !other.Shares) {
			return other
		}
	}
	return nil
}

// checkMin finds holds that began before the min hold of another was over, however that hold ended.
func checkMin(holds []*Hold) []Violation {
	const rounding = 2 * time.Millisecond
	var found []Violation
	for i, hold := range holds {
		if hold.asked.Min == 0 || hold.Root != hold.ID {
			continue
		}
		claim := hold.lastClaim()
		claim.Shares = claim.Shares || isReadOn(hold, holds[i+1:])
		kept := judge.Kept{Claim: claim, Until: time.Duration(hold.earliestGrant(holds[:i])+hold.asked.Min) - rounding}
		for _, other := range holds[i+1:] {
			began := time.Duration(other.Start)
			if began >= kept.Until {
				break
			}
			if early := kept.Early(other.Claim, began); early > 0 && other.Token > hold.Token {
				found = append(found, violation(judge.MinHold, hold.Name, recordsOf(hold, other),
					"%s got in %v before the min hold of %s was over", other.ID, early+rounding, hold.ID))
				break
			}
		}
	}
	return found
}

// isReadOn reports whether another lease on the same hold, which reads or came to read, outlived
// this one. The release of the last writer of such a hold downgrades it.
func isReadOn(hold *Hold, later []*Hold) bool {
	return slices.ContainsFunc(later, func(other *Hold) bool {
		return other.Root == hold.Root && other.lastClaim().Shares && other.End > hold.End
	})
}

// earliestGrant returns the earliest moment at which the server may have granted a hold: not before
// its call, nor before the end of an earlier one that excludes it and was trusted.
func (hold *Hold) earliestGrant(earlier []*Hold) int64 {
	since := hold.Called
	for _, other := range earlier {
		if other.isTrusted() && other.Token < hold.Token && other.Excludes(hold.Claim) {
			since = max(since, min(other.End, hold.Start))
		}
	}
	return since
}

// checkTrust finds leases that came back, and an Err that was nil when the time of Until was over.
func checkTrust(holds []*Hold) []Violation {
	var found []Violation
	report := func(hold *Hold, said Record, what string) {
		found = append(found, violation(judge.Trust, hold.Name, append(hold.records(), said),
			"%s (token %d) %s", hold.ID, hold.Token, what))
	}
	for _, hold := range holds {
		if hold.bad != nil {
			report(hold, *hold.bad, "was lost, and not both Err and the context's cause said so")
		}
		for _, said := range hold.Trusts {
			switch {
			case said.Result == Overdue:
				report(hold, said, "was said to be good after its trust end")
			case hold.Notice != nil && hold.Notice.At < said.At:
				report(hold, said, "was said to be good after its loss had been told")
			}
		}
	}
	return found
}

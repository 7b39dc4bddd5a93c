package history

import "fmt"

// checkReleases finds releases reported done that were not: of a lease given back before, of one whose loss had been
// told, and of one after which another had been granted. holds are of one name, in the order of their begin.
func checkReleases(holds []*Hold) []Violation {
	var found []Violation
	report := func(hold *Hold, what string, more ...Record) {
		found = append(found, Violation{
			Rule: RuleRelease, Name: hold.Name, Records: append(hold.story(), more...),
			Text: fmt.Sprintf("the release of %s (token %d) was reported done although %s", hold.ID, hold.Token, what),
		})
	}
	for i, hold := range holds {
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
				if heir := successor(hold, holds[i+1:], op.Call.At); heir != nil {
					report(hold, "the lock was already "+heir.ID+"'s", heir.Lock)
				}
			}
		}
	}
	return found
}

// successor is a hold of another lease with a larger token that had returned by the moment at.
func successor(hold *Hold, later []*Hold, at int64) *Hold {
	for _, other := range later {
		if other.Start >= at {
			return nil
		}
		if other.Root != hold.Root && other.Token > hold.Token {
			return other
		}
	}
	return nil
}

// checkTrust finds leases that came back, and an Err that was nil when the time of Until was over.
func checkTrust(holds []*Hold) []Violation {
	var found []Violation
	report := func(hold *Hold, said Record, what string) {
		found = append(found, Violation{
			Rule: RuleTrust, Name: hold.Name, Records: append(hold.story(), said),
			Text: fmt.Sprintf("%s (token %d) %s", hold.ID, hold.Token, what),
		})
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

package history

import (
	"fmt"
	"time"
)

// checkOverlap finds every hold that began while another of the same name was trusted. holds are of one name, in the
// order of their begin, so the one that reaches furthest tells for all before; as entries of one lease do not exclude
// each other, the furthest of every other lease must be known as well: two candidates of different roots suffice.
func checkOverlap(holds []*Hold) []Violation {
	var found []Violation
	var far, next *Hold // next: the furthest of another root than far's
	for _, hold := range holds {
		if !hold.trusted() {
			continue
		}
		rival := far
		if far != nil && far.Root == hold.Root {
			rival = next
		}
		if rival != nil && rival.End > hold.Start {
			found = append(found, overlap(rival, hold))
		}
		switch {
		case far == nil || hold.End > far.End:
			if far != nil && far.Root != hold.Root {
				next = far
			}
			far = hold
		case hold.Root != far.Root && (next == nil || hold.End > next.End):
			next = hold
		}
	}
	return found
}

func overlap(first, second *Hold) Violation {
	both := min(first.End, second.End) - second.Start
	return Violation{
		Rule: RuleOverlap, Name: second.Name, Records: stories(first, second),
		Text: fmt.Sprintf("%s (token %d) and %s (token %d) were both trusted for %v",
			first.ID, first.Token, second.ID, second.Token, time.Duration(both)),
	}
}

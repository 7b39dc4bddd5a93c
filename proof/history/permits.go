package history

import (
	"slices"

	"github.com/holdfast-go/holdfast/proof/judge"
)

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

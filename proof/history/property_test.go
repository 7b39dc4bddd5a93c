package history

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// anyHolds draws holds of one name on a small time scale, so that every relation of two of them is
// common.
func anyHolds(t *rapid.T) []*Hold {
	n := rapid.IntRange(0, 12).Draw(t, "holds")
	holds := make([]*Hold, n)
	for i := range holds {
		called := rapid.Int64Range(0, 30).Draw(t, "called")
		hold := &Hold{
			ID: fmt.Sprint("h", i), Name: "n", Called: called,
			Start: called + rapid.Int64Range(0, 10).Draw(t, "wait"),
			Token: rapid.Int64Range(1, 20).Draw(t, "token"),
		}
		hold.End = hold.Start + rapid.Int64Range(-5, 20).Draw(t, "length")
		hold.Shares = rapid.Bool().Draw(t, "shares")
		hold.Owner = rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "owner")
		if hold.Exclusive = hold.Start; !hold.Shares {
			hold.Exclusive = rapid.Int64Range(min(hold.Start, hold.End), max(hold.Start, hold.End)).Draw(t, "exclusive")
		}
		hold.Root = fmt.Sprint("h", rapid.IntRange(0, i).Draw(t, "root"))
		for _, outer := range holds[:i] {
			if outer.ID == hold.Root {
				hold.Root = outer.Root
			}
		}
		holds[i] = hold
	}
	slices.SortStableFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.Start, b.Start) })
	return holds
}

// TestOverlapAgreesWithEveryPair compares the sweep with the definition: any two, and whether they
// overlap.
func TestOverlapAgreesWithEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holds := anyHolds(t)
		var want int
		for j, second := range holds {
			if slices.ContainsFunc(holds[:j], func(first *Hold) bool {
				both := first.Root != second.Root && first.isTrusted() && second.isTrusted() && first.End > second.Start
				return both && (first.Owner == "" || first.Owner != second.Owner) &&
					(!second.Shares || first.Exclusive > second.Start)
			}) {
				want++
			}
		}
		if got := checkOverlap(holds); len(got) != want {
			t.Fatalf("%d holds overlap an earlier one, found %d:\n%v", want, len(got), got)
		}
	})
}

package judge

import (
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// TestFaultsEveryPair compares the search with the definition: any two grants.
func TestFaultsEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grants := make([]Grant, rapid.IntRange(0, 12).Draw(t, "grants"))
		for i := range grants {
			g := &grants[i]
			g.Proc = rapid.SampledFrom([]string{"p", "q"}).Draw(t, "process")
			g.Owner = rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "owner")
			g.Shares, g.Trusted = rapid.Bool().Draw(t, "shares"), rapid.Bool().Draw(t, "trusted")
			g.Joined = g.Shares || rapid.Bool().Draw(t, "downgraded")
			g.Token = rapid.Int64Range(1, 20).Draw(t, "token")
			g.Called = rapid.Int64Range(0, 30).Draw(t, "called")
			g.Returned = g.Called + rapid.Int64Range(0, 10).Draw(t, "wait")
		}
		slices.SortStableFunc(grants, func(a, b Grant) int { return int(a.Returned - b.Returned) })
		want := map[int]bool{}
		for i, later := range grants {
			wrong := func(g Grant) bool { return g.Token == later.Token || g.Token > later.Token && g.Before(later) }
			joined := func(g Grant) bool { return g.JoinedBy(later) }
			if slices.ContainsFunc(grants[:i], wrong) && !slices.ContainsFunc(grants[:i], joined) {
				want[i] = true
			}
		}
		got := Faults(grants)
		for _, f := range got {
			if !want[f.Second] {
				t.Fatalf("%+v is no fault", f)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("found %v, want %v", got, want)
		}
	})
}

func TestWaitPassedBy(t *testing.T) {
	w := Wait{100, 500}
	for other, want := range map[Wait]bool{{211, 489}: true, {209, 489}: false, {211, 491}: false, {50, 200}: false} {
		if got := w.PassedBy(other, 110, 10); got != want {
			t.Errorf("passed by %v: %v", other, got)
		}
	}
}

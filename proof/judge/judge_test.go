package judge

import (
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestClaimExcludes(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Claim
		want bool
	}{
		{"two writers", Claim{}, Claim{}, true},
		{"two leases", Claim{Root: "a"}, Claim{Root: "b"}, true},
		{"an entry and its lease", Claim{Root: "a"}, Claim{Root: "a"}, false},
		{"two owners", Claim{Owner: "ann"}, Claim{Owner: "bob"}, true},
		{"an owner and a caller without", Claim{Owner: "ann"}, Claim{}, true},
		{"one owner", Claim{Owner: "ann"}, Claim{Owner: "ann"}, false},
		{"a writer and a reader", Claim{}, Claim{Shares: true}, true},
		{"two readers", Claim{Shares: true}, Claim{Shares: true}, false},
		{"permits", Claim{Weight: 2}, Claim{Weight: 3}, false},
	} {
		if c.a.Excludes(c.b) != c.want || c.b.Excludes(c.a) != c.want {
			t.Errorf("%s exclude each other: %v, want %v", c.name, !c.want, c.want)
		}
	}
}

// A seen is a hold for these tests.
type seen struct {
	weight int64
	good   bool
}

func (s seen) Claim() Claim  { return Claim{Weight: s.weight} }
func (s seen) Trusted() bool { return s.good }

func TestTrustedSum(t *testing.T) {
	if n := Sum(Trusted([]seen{{2, true}, {4, false}, {1, true}})); n != 3 {
		t.Errorf("%d permits are trusted, want 3", n)
	}
}

func TestKeptEarly(t *testing.T) {
	kept := Kept{Claim{Root: "a"}, 5 * time.Second}
	for _, c := range []struct {
		name  string
		other Claim
		began time.Duration
		early bool
	}{
		{"before its end", Claim{Root: "b"}, 3 * time.Second, true},
		{"a reader before its end", Claim{Root: "b", Shares: true}, 3 * time.Second, true},
		{"at its end", Claim{Root: "b"}, 5 * time.Second, false},
		{"an entry", Claim{Root: "a"}, 3 * time.Second, false},
	} {
		if early := kept.Early(c.other, c.began); early > 0 != c.early {
			t.Errorf("%s: %v early", c.name, early)
		}
	}
}

func TestTokensGrow(t *testing.T) {
	tokens := Tokens{}.With(5, false).With(7, true)
	for token, want := range map[int64][2]bool{5: {false, false}, 6: {false, true}, 7: {false, true}, 8: {true, true}} {
		if got := [2]bool{tokens.Grow(token, false), tokens.Grow(token, true)}; got != want {
			t.Errorf("%d after %+v as a writer's and as a reader's: %v, want %v", token, tokens, got, want)
		}
	}
	for token, want := range map[int64]bool{-1: false, 0: false, 1: true, 1<<53 - 1: true, 1 << 53: false} {
		if IsToken(token) != want {
			t.Errorf("%d can be a token: %v", token, !want)
		}
	}
}

// A reader of an owner joins a hold although the owner has got a larger token beside it.
func TestFaultsJoined(t *testing.T) {
	ann := Claim{Owner: "ann", Shares: true}
	reader := Grant{Claim: ann, Proc: "p", Joined: true, Token: 5, Returned: 10, Trusted: true}
	writer := Grant{Claim: Claim{Owner: "ann"}, Proc: "p", Token: 6, Called: 20, Returned: 30, Trusted: true}
	joins := Grant{Claim: ann, Proc: "p", Joined: true, Token: 5, Called: 40, Returned: 50, Trusted: true}
	if faults := Faults([]Grant{reader, writer, joins}); len(faults) > 0 {
		t.Errorf("found %v", faults)
	}
	joins.Proc = "q"
	if faults := Faults([]Grant{reader, writer, joins}); len(faults) != 1 || faults[0].First != 1 {
		t.Errorf("of another process: found %v", faults)
	}
}

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

func TestStorageCount(t *testing.T) {
	var s Storage
	read := func(token int64, shares bool, want int64) {
		t.Helper()
		if value, ok := s.Read("n", token, shares); ok != (want >= 0) || value != max(want, 0) {
			t.Errorf("token %d reads %d, %v, want %d", token, value, ok, want)
		}
	}
	write := func(token, base, value int64, wantOK, wantLost bool) {
		t.Helper()
		if ok, lost := s.Write("n", token, base, value); ok != wantOK || lost != wantLost {
			t.Errorf("token %d writes %d: %v, %v", token, value, ok, lost)
		}
	}
	read(5, false, 0)
	write(5, 0, 1, true, false)
	read(6, false, 1)
	write(5, 0, 9, false, false) // late, and would have overwritten another's
	read(5, false, -1)
	write(6, 1, 2, true, false)
	write(6, 1, 2, true, true) // from an old reading
	read(8, true, 2)
	read(7, true, 2) // readers do not refuse one another
	write(7, 2, 3, false, false)
	if want := (Accesses{Writes: 3, Reads: 4, Late: 3, Spoiled: 1, Lost: 1}); s.Count != want {
		t.Errorf("counted %+v, want %+v", s.Count, want)
	}
}

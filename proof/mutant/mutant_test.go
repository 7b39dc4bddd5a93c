package mutant

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/proof/leak"
)

const root = "../.."

func TestMain(m *testing.M) {
	code := m.Run()
	if err := leak.Check(2 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestPatchesFit fails when the source under a mutant has changed, long before anybody runs them all.
func TestPatchesFit(t *testing.T) {
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Copy(root, dir); err != nil {
				t.Fatal(err)
			}
			if err := m.Apply(dir); err != nil {
				t.Error(err)
			}
			if len(m.Rules) == 0 {
				t.Error("no rule that it breaks")
			}
		})
	}
}

func TestApplyIsLoud(t *testing.T) {
	for _, c := range []struct {
		name  string
		patch Patch
		want  string
	}{
		{"once", Patch{"f", "two", "2"}, ""},
		{"never", Patch{"f", "four", "4"}, "0 times"},
		{"twice", Patch{"f", "one", "1"}, "2 times"},
		{"no such file", Patch{"g", "one", "1"}, "g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := os.WriteFile(path, []byte("one two one"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Mutant{Name: "m", Patches: []Patch{c.patch}}.Apply(dir)
			data, _ := os.ReadFile(path)
			switch {
			case c.want == "" && (err != nil || string(data) != "one 2 one"):
				t.Errorf("got %q, error %v", data, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || string(data) != "one two one"):
				t.Errorf("got %q, error %v, want one that says %q", data, err, c.want)
			}
		})
	}
	if err := (Mutant{Name: "none"}).Apply(t.TempDir()); err == nil {
		t.Error("a mutant without a patch was taken")
	}
}

func TestBroken(t *testing.T) {
	output := "=== RUN\n    torture_test.go:83: violation overlap: \"red\": x\n          1ms  p1 lock\n" +
		"    torture_test.go:83: violation token: \"red\": y\n    torture_test.go:83: violation overlap: \"red\": z\n" +
		"    torture_test.go:70: no violation stuck: here\n"
	if got := broken(output); !slices.Equal(got, []string{"overlap", "token"}) {
		t.Errorf("broken rules %v", got)
	}
}

// TestMutantsAreCaught tries every mutant. It compiles a copy of the library for each, so it runs with HOLDFAST_CHECK=1
// alone.
func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("HOLDFAST_CHECK") != "1" {
		t.Skip("HOLDFAST_CHECK=1 runs it")
	}
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			// A run that is long enough in all likelihood, and then others: which bugs show is a matter of timing.
			var verdict Verdict
			for range 4 {
				var err error
				verdict, err = m.Try(t.Context(), root, t.TempDir(), "HOLDFAST_CHECK=0", "HOLDFAST_TORTURE_SECONDS=10")
				if err != nil {
					t.Fatal(err)
				}
				if verdict.Caught {
					t.Logf("caught: %v", verdict.Rules)
					return
				}
			}
			t.Errorf("not caught by %v: broken was %v\n%s", m.Rules, verdict.Rules, verdict.Output)
		})
	}
}

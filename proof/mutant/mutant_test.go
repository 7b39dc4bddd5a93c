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

const top = "../.."

func TestMain(m *testing.M) {
	code := m.Run()
	if err := leak.Check(10 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestPatchesFit fails when the source under a mutant has changed, long before anybody runs them all.
func TestPatchesFit(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			if err := m.Apply(top, t.TempDir()); err != nil {
				t.Error(err)
			}
			if m.Caught.Test == "" || names[m.Name] {
				t.Error("no check that catches it, or no name of its own")
			}
			names[m.Name] = true
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
			from, to := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(from, "f"), []byte("one two one"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Mutant{Name: "m", Patches: []Patch{c.patch}}.Apply(from, to)
			data, _ := os.ReadFile(filepath.Join(to, "f"))
			switch {
			case c.want == "" && (err != nil || string(data) != "one 2 one"):
				t.Errorf("got %q, error %v", data, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || data != nil):
				t.Errorf("got %q, error %v, want one that says %q", data, err, c.want)
			}
		})
	}
	if err := (Mutant{Name: "none"}).Apply(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a mutant without a patch was taken")
	}
}

// TestCheckNames: a test is run by its full name, and no other whose name begins with it.
func TestCheckNames(t *testing.T) {
	c := Check{Module: "redisstore", Package: ".", Test: "TestA/b+c"}
	if args := c.args(); !slices.Contains(args, `-run=^TestA$/^b\+c$`) {
		t.Errorf("got %q", args)
	}
	if got := c.String(); got != "redisstore TestA/b+c" {
		t.Errorf("got %q", got)
	}
}

// TestMutantsAreCaught tries those that only the history shows. It compiles a copy of the library for each, so it runs
// with HOLDFAST_CHECK=1 alone; make mutants tries them all.
func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("HOLDFAST_CHECK") != "1" {
		t.Skip("HOLDFAST_CHECK=1 runs it")
	}
	for _, m := range always() {
		t.Run(m.Name, func(t *testing.T) {
			verdict, err := m.Try(t.Context(), top, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if !verdict.Caught {
				t.Errorf("not caught by %v\n%s", m.Caught, verdict.Output)
			}
			t.Logf("caught after %v", verdict.After)
		})
	}
}

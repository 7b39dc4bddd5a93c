package mutant

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

const top = "../.."

func TestMain(m *testing.M) {
	os.Exit(leak.Main(m))
}

// TestPatchesFit fails when the source under a mutant or the name of its check has changed, long
// before anybody runs them all.
func TestPatchesFit(t *testing.T) {
	copied := t.TempDir()
	fatal.If(t, Copy(top, copied))
	names := map[string]bool{}
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			if err := m.Apply(top, t.TempDir()); err != nil {
				t.Error(err)
			}
			for _, p := range m.Patches {
				if _, err := os.Stat(filepath.Join(copied, p.File)); err != nil {
					t.Errorf("what is patched is not in the copy: %v", err)
				}
			}
			if names[m.Name] {
				t.Error("no name of its own")
			}
			names[m.Name] = true
			if !defined(t, copied, m.Caught) {
				t.Errorf("there is no test of %v", m.Caught)
			}
		})
	}
}

// defined reports whether a package has the function of a check's test.
func defined(t *testing.T, root string, c Check) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, c.Module, c.Package, "*_test.go"))
	fatal.If(t, err)
	name, _, _ := strings.Cut(c.Test, "/")
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		fatal.If(t, err)
		return strings.Contains(string(text), "\nfunc "+name+"(")
	})
}

// TestCheckRun: only a failure of the check's own test counts as one. The output is that of real
// test programs.
func TestCheckRun(t *testing.T) {
	const program = `package p

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("P") == "leaks" {
		code = 1
	}
	os.Exit(code)
}

func TestA(t *testing.T) {
	t.Run("b", func(t *testing.T) {
		switch os.Getenv("P") {
		case "fails":
			t.Error("violation one: of two")
		case "runs a broken script":
			t.Error("ERR user_script:3: attempt to index a nil value script: 1, on @user_script:3.")
		case "is refused by a script":
			t.Error("WRONGTYPE Operation against a key script: 1, on @user_script:3.")
		case "skips":
			t.Skip()
		case "hangs":
			<-time.After(time.Hour)
		case "panics elsewhere":
			go panic("elsewhere")
			<-time.After(time.Hour)
		}
	})
}
`
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module p\n", "p_test.go": program} {
		fatal.If(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	check := Check{Module: ".", Package: ".", Test: "TestA/b"}
	fatal.If(t, check.build(t.Context(), dir))
	for _, c := range []struct {
		p    string
		test string
		says string
		want outcome
		err  string
	}{
		{"passes", "TestA/b", "", passed, ""},
		{"fails", "TestA/b", "", failed, ""},
		{"fails", "TestA/b", "violation one: ", failed, ""},
		{"fails", "TestA/b", "violation two: ", passed, ""},
		{"hangs", "TestA/b", "", stuck, ""},
		{"is refused by a script", "TestA/b", "", failed, ""},
		{"runs a broken script", "TestA/b", "", 0, "the script does not run"},
		{"runs a broken script", "TestA/b", "attempt to index", failed, ""},
		{"skips", "TestA/b", "", 0, "no such test, or it was skipped"},
		{"passes", "TestA/c", "", 0, "no such test, or it was skipped"},
		{"leaks", "TestA/b", "", 0, "something else failed"},
		{"panics elsewhere", "TestA/b", "", 0, "something else failed"},
	} {
		t.Run(c.p+" "+c.test+" "+c.says, func(t *testing.T) {
			t.Setenv("P", c.p)
			check := Check{Module: ".", Package: ".", Test: c.test, Says: c.says}
			limit := time.Minute
			if c.want == stuck {
				limit = 100 * time.Millisecond
			}
			got, output, err := check.run(t.Context(), dir, limit)
			for c.want == stuck && got != stuck && limit < time.Minute { // the test had not begun yet
				limit *= 2
				got, output, err = check.run(t.Context(), dir, limit)
			}
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, error %v, want %v, %q\n%s", got, err, c.want, c.err, output)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "q_test.go"), []byte("package p\n\nvar x int = true\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	fatal.If(t, os.Remove(check.program(dir)))
	if err := check.build(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "does not compile") {
		t.Errorf("got %v, want that it does not compile", err)
	}
}

// TestMutantsAreCaught tries those that only the history shows. It compiles a copy of the library
// for each, so it runs with HOLDFAST_PROOF=1 alone; make mutants tries them all.
func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("HOLDFAST_PROOF=1 runs it")
	}
	for _, m := range Mutants() {
		if m.Caught.Says != "violation overlap:" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			verdict, err := m.Try(t.Context(), top, t.TempDir(), 1)
			fatal.If(t, err)
			if !verdict.Caught() {
				t.Errorf("not caught by %v\n%s", m.Caught, verdict.Output)
			}
			t.Logf("caught after %v", verdict.After)
		})
	}
}

package mutant

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Check is a test that fails when the library is broken.
type Check struct {
	Module  string // its directory in the repository
	Package string // within the module, as go test takes it
	Test    string // its full name as go test prints it, with those of subtests
	Says    string // what its output must have in it when it fails; empty: anything
}

// String returns the check as it is named in the table.
func (c Check) String() string {
	name := c.Test
	if c.Says != "" {
		name += " (" + c.Says + ")"
	}
	if where := filepath.ToSlash(filepath.Join(c.Module, c.Package)); where != "." {
		name = where + " " + name
	}
	return name
}

// program returns where build puts the test program of the check, in a copy of the repository.
func (c Check) program(dir string) string {
	name := strings.NewReplacer("/", "_", ".", "_").Replace(c.Module + "_" + c.Package)
	return filepath.Join(dir, "tmp", name+".test")
}

// build compiles the tests of the check's package in a copy of the repository, unless that is done.
// A copy that does not compile proves nothing, so building is apart from running. Paths are
// trimmed, so that copies share compiled packages.
func (c Check) build(ctx context.Context, dir string) error {
	if _, err := os.Stat(c.program(dir)); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return err
	}
	out, err := goTest(ctx, filepath.Join(dir, c.Module), nil, "-c", "-trimpath", "-vet=off", "-o", c.program(dir),
		c.Package)
	if err != nil {
		return fmt.Errorf("%v: does not compile: %w\n%s", c, err, out)
	}
	return nil
}

// An outcome is what one run of a check came to.
type outcome int

const (
	passed outcome = iota
	failed
	stuck // the check was still running when its time was over
)

// pattern chooses the check's test for -test.run, and no other.
func (c Check) pattern() string {
	parts := strings.Split(c.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// run runs the check once, after build, for at most limit. An error says that the check could not
// be run, or that something else failed.
func (c Check) run(ctx context.Context, dir string, limit time.Duration) (outcome, string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute) // the program ends itself before
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program(dir), "-test.v", "-test.paniconexit0", "-test.timeout="+limit.String(),
		"-test.run="+c.pattern())
	cmd.Dir = filepath.Join(dir, c.Module, c.Package)
	proof := "0"
	if c.Module == "proof" && slices.Contains(proofPackages, c.Package) {
		proof, cmd.Args = "1", append(cmd.Args, "-test.short") // which judges no time
	}
	cmd.Env = append(cmd.Environ(), "HOLDFAST_PROOF="+proof, "HOLDFAST_TORTURE_SECONDS=10",
		"TMPDIR="+filepath.Join(dir, "tmp")) // what a failed test keeps goes with the copy
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	came, err := c.judge(string(out), err)
	return came, string(out), err
}

// proofPackages are the packages of module proof whose checks run, or are longer, with
// HOLDFAST_PROOF=1.
var proofPackages = []string{".", "./faults", "./quorum", "./simulate"}

// enough is the time of one run of a check, also on a machine that has much else to do.
const enough = 2 * time.Minute

// judge reads what a run of the check printed. Ended is the error with which the program ended.
func (c Check) judge(output string, ended error) (outcome, error) {
	var exit *exec.ExitError
	switch {
	case ended == nil && strings.Contains(output, "--- PASS: "+c.Test+" ("):
		return passed, nil
	case ended == nil:
		return passed, fmt.Errorf("%v: there is no such test, or it was skipped", c)
	case strings.Contains(output, "panic: test timed out") && strings.Contains(output, "\t\t"+c.Test+" ("):
		return stuck, nil
	case !errors.As(ended, &exit) || !strings.Contains(output, "--- FAIL: "+c.Test+" ("):
		return passed, fmt.Errorf("%v: something else failed: %w", c, ended)
	case c.Says == "" && brokenScript.MatchString(output):
		return passed, fmt.Errorf("%v: the script does not run", c)
	case !strings.Contains(output, c.Says):
		return passed, nil
	}
	return failed, nil
}

// brokenScript is how Redis and the embedded server report a mistake in Lua itself: any check fails
// for that, unless it must say what it noticed.
var brokenScript = regexp.MustCompile(`(user_script|<string>):\d+: (attempt to |bad argument |Script attempted to )`)

// goTest runs go test in a directory.
func goTest(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(cmd.Environ(), "GOWORK=off"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Copy copies the sources of the repository at root into dir.
func Copy(root, dir string) error {
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		to := filepath.Join(dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path != "." && entry.Name()[0] == '.' || path == "dist"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(to, 0o700)
		case !isSource(entry.Name()):
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
	if err != nil {
		return fmt.Errorf("mutant: copy: %w", err)
	}
	return nil
}

func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".css", ".go", ".html", ".js", ".lua", ".md", ".mod", ".sum", ".svg", ".txt", ".txtar":
		return true
	}
	return false
}

package mutant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A Check is a test that fails when the library is broken.
type Check struct {
	Module  string // its directory in the repository
	Package string // within the module, as go test takes it
	Test    string // its full name as go test prints it, with those of subtests
	Says    string // what its output must have in it when it fails; empty: anything
	Tries   int    // for one whose outcome is a matter of timing; 0 is 1
}

// String is the check as it is named in the table.
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

// args are those of the go command that runs the check. Paths are trimmed, so that copies share what was compiled.
func (c Check) args() []string {
	parts := strings.Split(c.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return []string{"-trimpath", "-vet=off", "-timeout=50s", "-v", "-run=" + strings.Join(parts, "/"), c.Package}
}

// run runs the check in a copy of the repository. An error says that it could not be run, or that something else failed.
func (c Check) run(ctx context.Context, dir string) (failed bool, output string, err error) {
	kept := filepath.Join(dir, "tmp") // what a failed test keeps is not kept longer than the copy
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return false, "", err
	}
	for range max(1, c.Tries) {
		var fails error
		output, fails = test(ctx, filepath.Join(dir, c.Module), []string{"TMPDIR=" + kept, "HOLDFAST_CHECK=0", "HOLDFAST_TORTURE_SECONDS=10"}, c.args()...)
		var exit *exec.ExitError
		switch {
		case fails == nil && !strings.Contains(output, "--- PASS: "+c.Test+" ("):
			return false, output, fmt.Errorf("%v: there is no such test, or it was skipped", c)
		case fails == nil:
			continue
		case strings.Contains(output, "panic: test timed out") && strings.Contains(output, "\t\t"+c.Test+" ("): // stuck: caught as well
			return true, output, nil
		case !errors.As(fails, &exit) || !strings.Contains(output, "--- FAIL: "+c.Test+" ("):
			return false, output, fmt.Errorf("%v: something else failed: %w", c, fails)
		case strings.Contains(output, c.Says):
			return true, output, nil
		}
	}
	return false, output, nil
}

// test runs go test in a directory.
func test(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(cmd.Environ(), "GOWORK=off"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

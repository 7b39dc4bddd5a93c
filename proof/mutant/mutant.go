package mutant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Mutant is one deliberate bug.
type Mutant struct {
	Name    string
	Rules   []string // of package history; breaking one of them shows that the bug was caught
	Patches []Patch
}

// A Patch replaces a text in one file. Both texts are whole lines or parts of them; Old occurs once in the file.
type Patch struct {
	File     string // in the repository, with slashes
	Old, New string
}

// Apply patches the sources under dir.
func (m Mutant) Apply(dir string) error {
	if len(m.Patches) == 0 {
		return fmt.Errorf("mutant %s: changes nothing", m.Name)
	}
	for _, p := range m.Patches {
		path := filepath.Join(dir, filepath.FromSlash(p.File))
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("mutant %s: %w", m.Name, err)
		}
		if n := strings.Count(string(data), p.Old); n != 1 {
			return fmt.Errorf("mutant %s: the text to replace is %d times in %s, not once:\n%s", m.Name, n, p.File, p.Old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), p.Old, p.New, 1)), 0o600); err != nil {
			return fmt.Errorf("mutant %s: %w", m.Name, err)
		}
	}
	return nil
}

// scripts tells whether a patch changes what goes over the wire.
func (m Mutant) scripts() bool {
	return slices.ContainsFunc(m.Patches, func(p Patch) bool { return strings.HasSuffix(p.File, ".lua") })
}

// A Verdict is what became of a mutant.
type Verdict struct {
	Caught bool
	Rules  []string // all that were broken, each once
	Output string   // of the workload
}

// Try copies the repository at root into the empty directory dir, breaks the copy, and runs the workload in it with
// env, such as a seed and a length. An error says that the mutant could not be tried.
func (m Mutant) Try(ctx context.Context, root, dir string, env ...string) (Verdict, error) {
	if err := Copy(root, dir); err != nil {
		return Verdict{}, err
	}
	if err := m.Apply(dir); err != nil {
		return Verdict{}, err
	}
	if m.scripts() {
		if out, err := test(ctx, dir, []string{"UPDATE_DIGESTS=1"}, "-run=^TestDigests$", "./internal/native"); err != nil {
			return Verdict{}, fmt.Errorf("mutant %s: digests: %w\n%s", m.Name, err, out)
		}
	}
	env = append(env, "TMPDIR="+dir) // the history of a failed run is kept: not longer than the copy
	out, err := test(ctx, filepath.Join(dir, "proof"), env, "-v", "-run=^Test(Torture|Calm)$", ".")
	verdict := Verdict{Output: out, Rules: broken(out)}
	if err == nil {
		return verdict, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(out, "--- FAIL: Test") {
		return verdict, fmt.Errorf("mutant %s: did not run: %w\n%s", m.Name, err, out)
	}
	verdict.Caught = slices.ContainsFunc(m.Rules, func(rule string) bool { return slices.Contains(verdict.Rules, rule) })
	return verdict, nil
}

func test(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(cmd.Environ(), "GOWORK=off"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var violation = regexp.MustCompile(`(?m)^\s+\w+\.go:\d+: violation (\w+): `)

// broken finds the rules that a workload's output says were broken.
func broken(output string) []string {
	var rules []string
	for _, match := range violation.FindAllStringSubmatch(output, -1) {
		if !slices.Contains(rules, match[1]) {
			rules = append(rules, match[1])
		}
	}
	return rules
}

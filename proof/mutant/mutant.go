package mutant

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Mutant is one deliberate bug, and what must notice it.
type Mutant struct {
	Name    string
	Caught  Check
	Patches []Patch
}

// A Patch replaces a text in one file. Both texts are whole lines or parts of them; Old occurs once in the file.
type Patch struct {
	File     string // in the repository, with slashes
	Old, New string
}

// Apply patches the sources of the repository at root and writes what came of it below dir. Nothing is written on failure.
func (m Mutant) Apply(root, dir string) error {
	if len(m.Patches) == 0 {
		return fmt.Errorf("mutant %s: changes nothing", m.Name)
	}
	patched := make(map[string]string)
	for _, p := range m.Patches {
		text, ok := patched[p.File]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.File)))
			if err != nil {
				return fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(data)
		}
		if n := strings.Count(text, p.Old); n != 1 {
			return fmt.Errorf("mutant %s: the text to replace is %d times in %s, not once:\n%s", m.Name, n, p.File, p.Old)
		}
		patched[p.File] = strings.Replace(text, p.Old, p.New, 1)
	}
	for file, text := range patched {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("mutant %s: %w", m.Name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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
	After  time.Duration // from the start of the check, its compiling included
	Output string        // of the check
}

// Try copies the repository at root into the empty directory dir, breaks the copy, and runs the check in it. An error
// says that the mutant could not be tried.
func (m Mutant) Try(ctx context.Context, root, dir string) (Verdict, error) {
	if err := Copy(root, dir); err != nil {
		return Verdict{}, err
	}
	if err := m.Apply(root, dir); err != nil {
		return Verdict{}, err
	}
	if m.scripts() {
		if out, err := test(ctx, dir, []string{"UPDATE_DIGESTS=1"}, "-trimpath", "-vet=off", "-run=^TestDigests$", "./internal/native"); err != nil {
			return Verdict{}, fmt.Errorf("mutant %s: digests: %w\n%s", m.Name, err, out)
		}
	}
	began := time.Now()
	failed, output, err := m.Caught.run(ctx, dir)
	if err != nil {
		return Verdict{}, fmt.Errorf("mutant %s: %w\n%s", m.Name, err, output)
	}
	return Verdict{Caught: failed, After: time.Since(began), Output: output}, nil
}

// Sound runs a check on an unbroken copy in dir, which Copy has made: it must pass.
func Sound(ctx context.Context, dir string, c Check) error {
	failed, output, err := c.run(ctx, dir)
	if err == nil && failed {
		err = fmt.Errorf("%v fails where nothing is broken", c)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

package mutant

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yuin/gopher-lua/parse"
)

// A Mutant is one deliberate bug, and what must notice it.
type Mutant struct {
	Name    string
	Caught  Check
	Patches []Patch
}

// A Patch replaces a text in one file. Both texts are whole lines or parts of them; Old occurs once
// in the file.
type Patch struct {
	File     string // in the repository, with slashes
	Old, New string
}

// Apply patches the sources of the repository at root and writes what came of it below dir. Nothing
// is written on failure.
func (m Mutant) Apply(root, dir string) error {
	patched, err := m.patch(root)
	if err != nil {
		return fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	for file, text := range patched {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (m Mutant) patch(root string) (patched map[string]string, err error) {
	if len(m.Patches) == 0 {
		return nil, errors.New("changes nothing")
	}
	patched = map[string]string{}
	for _, p := range m.Patches {
		text, ok := patched[p.File]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.File)))
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		if p.Old == p.New {
			return nil, fmt.Errorf("a patch of %s changes nothing", p.File)
		}
		if n := strings.Count(text, p.Old); n != 1 {
			return nil, fmt.Errorf("the text to replace is %d times in %s, not once:\n%s", n, p.File, p.Old)
		}
		patched[p.File] = strings.Replace(text, p.Old, p.New, 1)
	}
	for file, text := range patched {
		err = errors.Join(err, compiles(file, text))
	}
	return patched, err
}

// compiles reads a patched file as its language. A script that the server cannot compile would fail
// any check.
func compiles(file, text string) error {
	var err error
	switch path.Ext(file) {
	case ".lua":
		_, err = parse.Parse(strings.NewReader(text), file)
	case ".go":
		_, err = parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	}
	return err
}

// scripts reports whether a patch changes what goes over the wire.
func (m Mutant) scripts() bool {
	return slices.ContainsFunc(m.Patches, func(p Patch) bool { return strings.HasSuffix(p.File, ".lua") })
}

// A Verdict is what became of a mutant.
type Verdict struct {
	Runs   int           // of the check
	Failed int           // runs that failed
	Stuck  int           // runs whose time was over: they noticed nothing
	After  time.Duration // from the start of the check to its first failure, its compiling included
	Output string        // of the first run that did not fail; of the first run if all did
}

// Caught reports whether the check noticed the mutant in every run.
func (v Verdict) Caught() bool { return v.Runs > 0 && v.Failed == v.Runs }

// Try copies the repository at root into the empty directory dir, breaks the copy, and runs the
// check in it, as many times as runs says. An error says that the mutant could not be tried.
func (m Mutant) Try(ctx context.Context, root, dir string, runs int) (v Verdict, err error) {
	if err := errors.Join(Copy(root, dir), m.Apply(root, dir)); err != nil {
		return v, err
	}
	if m.scripts() {
		if out, err := goTest(ctx, dir, []string{"UPDATE_DIGESTS=1"}, "-count=1", "-trimpath", "-vet=off",
			"-run=^TestDigests$", "./internal/native", "./internal/quorum"); err != nil {
			return v, fmt.Errorf("mutant %s: digests: %w\n%s", m.Name, err, out)
		}
	}
	began := time.Now()
	if err := m.Caught.build(ctx, dir); err != nil {
		return v, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	for range runs {
		came, output, err := m.Caught.run(ctx, dir, enough)
		if err != nil {
			return v, fmt.Errorf("mutant %s: run %d: %w\n%s", m.Name, v.Runs+1, err, output)
		}
		if v.Runs == 0 || came != failed && v.Failed == v.Runs {
			v.Output = output
		}
		v.Runs++
		switch came {
		case failed:
			if v.Failed++; v.Failed == 1 {
				v.After = time.Since(began)
			}
		case stuck:
			v.Stuck++
		}
	}
	return v, nil
}

// Sound runs a check on an unbroken copy in dir, which Copy has made: it must pass.
func Sound(ctx context.Context, dir string, c Check) error {
	if err := c.build(ctx, dir); err != nil {
		return err
	}
	came, output, err := c.run(ctx, dir, enough)
	if err == nil && came != passed {
		err = fmt.Errorf("%v fails where nothing is broken", c)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

package mutant

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// Files have the mutants of each part. A line begins with what it is: the name of a mutant (#), a
// check that must fail for it (caught by module, package, test, and what the test says), a file
// that is patched (in), and lines to replace (-) and to put in their place (+). A mutant with a
// second check counts as a second mutant.
//
//go:embed mutants
var files embed.FS

// Mutants returns the bugs that must be caught.
func Mutants() (all []Mutant) {
	names, err := fs.Glob(files, "mutants/*.txt")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n# ")[1:] {
			all = append(all, readMutant(part)...)
		}
	}
	return all
}

// readMutant reads a mutant, and returns it once for each of its checks.
func readMutant(text string) (mutants []Mutant) {
	name, text, _ := strings.Cut(text, "\n")
	var checks []Check
	var patches []Patch
	before := byte('#')
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		words := strings.SplitN(line, " ", 6)
		switch last := len(patches) - 1; {
		case line[0] == '-' && last >= 0:
			patches[last].Old += newline(before == '-') + line[1:]
		case line[0] == '+' && last >= 0:
			patches[last].New += newline(before == '+') + line[1:]
		case words[0] == "in":
			patches = append(patches, Patch{File: words[1]})
		case strings.HasPrefix(line, "caught by ") && len(words) > 4:
			checks = append(checks, Check{words[2], words[3], words[4], strings.Join(words[5:], "")})
		default:
			panic(fmt.Sprintf("mutant %s: line %q", name, line))
		}
		before = line[0]
	}
	for i, check := range checks {
		if i > 0 {
			name += ", by " + check.Test
		}
		mutants = append(mutants, Mutant{name, check, patches})
	}
	return mutants
}

// newline separates a line from one before it.
func newline(follows bool) string {
	if follows {
		return "\n"
	}
	return ""
}

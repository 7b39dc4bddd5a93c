package house

import (
	"path"
	"regexp"
	"testing"
)

// Every trap that a comment names is one of docs/traps.md, so that a reader can look it up.
func TestTrapsAreDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, entry := range regexp.MustCompile(`(?m)^(\d+b?)\. `).FindAllStringSubmatch(
		readText(t, "docs/traps.md"), -1) {
		described[entry[1]] = true
	}
	references := regexp.MustCompile(`(?i)\btraps?\s+(\d+b?(?:(?:, and|,| and)\s+\d+b?)*)`)
	number := regexp.MustCompile(`\d+b?`)
	named := 0
	walk(t, func(name string) {
		switch path.Ext(name) {
		case ".go", ".lua", ".md", ".txtar", ".sh":
		default:
			return
		}
		for _, reference := range references.FindAllStringSubmatch(readText(t, name), -1) {
			for _, trap := range number.FindAllString(reference[1], -1) {
				if named++; !described[trap] {
					t.Errorf("%s names trap %s, which docs/traps.md does not describe", name, trap)
				}
			}
		}
	})
	if len(described) < 50 || named < 100 {
		t.Errorf("%d traps are described, %d named", len(described), named)
	}
}

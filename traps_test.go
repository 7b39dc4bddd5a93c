package holdfast_test

import (
	"os"
	"path"
	"regexp"
	"testing"
)

// Every trap that a comment names is one of docs/traps.md, so that a reader can look it up.
func TestTrapsAreDescribed(t *testing.T) {
	list, err := os.ReadFile("docs/traps.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, entry := range regexp.MustCompile(`(?m)^(\d+b?)\. `).FindAllSubmatch(list, -1) {
		described[string(entry[1])] = true
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
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, reference := range references.FindAllSubmatch(text, -1) {
			for _, trap := range number.FindAllString(string(reference[1]), -1) {
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

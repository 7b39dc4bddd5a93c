package moving

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The code of docs/moving.md is that of this package, word for word.
func TestPageCodeIsTested(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		code.WriteString(lines(t, file))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(lines(t, "../../docs/moving.md"), -1)
	for _, block := range blocks {
		if !strings.Contains(code.String(), block[1]) {
			t.Errorf("no file of this package has\n%s", block[1])
		}
	}
	if len(blocks) < 4 {
		t.Errorf("the page has %d blocks of code", len(blocks))
	}
}

// lines returns a file without the indentation of its lines.
func lines(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^\t+|\r`).ReplaceAllString(string(text), "")
}

package steps

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../../.."

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

var (
	aSection = regexp.MustCompile(`(?m)^## (\d+)\. (.+)$`)
	aBlock   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
)

// The page has a section for each step, with what the command prints about it, and quotes code that
// is there.
func TestPageHasEachStep(t *testing.T) {
	page := readFile(t, "docs/steps.md")
	headings := aSection.FindAllStringSubmatchIndex(page, -1)
	steps := All()
	if len(headings) != len(steps) {
		t.Fatalf("docs/steps.md has %d steps, the command %d", len(headings), len(steps))
	}
	for i, at := range headings {
		step, end := steps[i], len(page)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		if heading, want := page[at[0]:at[1]], fmt.Sprintf("## %d. %s", i+1, step.Title); heading != want {
			t.Errorf("heading %q, want %q", heading, want)
		}
		t.Run(step.Title, func(t *testing.T) { sectionIs(t, page[at[1]:end], i+1, step) })
	}
}

func sectionIs(t *testing.T, section string, n int, step Step) {
	source := "cmd/holdfast/internal/steps/naive/" + step.Source
	prose := strings.Join(strings.Fields(aBlock.ReplaceAllString(section, "")), " ")
	for _, want := range []string{
		strings.Join(strings.Fields(step.Idea), " "),
		strings.Join(strings.Fields(step.Bug), " "),
		strings.Join(strings.Fields(step.Right.Why), " "),
		fmt.Sprintf("`holdfast steps %d`", n),
		fmt.Sprintf("](../%s)", source),
		fmt.Sprintf("](../%s)", step.Right.File),
	} {
		if !strings.Contains(prose, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	naive, right := readFile(t, source), readFile(t, step.Right.File)
	if !strings.Contains(right, step.Right.Code) {
		t.Errorf("%s does not have %q", step.Right.File, step.Right.Code)
	}
	blocks := aBlock.FindAllStringSubmatch(section, -1)
	if len(blocks) < 3 || strings.TrimSpace(blocks[0][2]) != strings.Join(step.Commands, "\n") {
		t.Fatalf("the first block is not the commands of the step")
	}
	if blocks[1][1] != "go" || !quotes(naive, blocks[1][2]) {
		t.Errorf("the second block is not code of %s", source)
	}
	if last := blocks[len(blocks)-1][2]; strings.TrimSpace(last) != step.Right.Code {
		t.Errorf("the last block is %q, want %q", last, step.Right.Code)
	}
}

// quotes tells whether a file has lines one after the other, whatever their indentation is.
func quotes(file, quoted string) bool {
	return strings.Contains("\n"+trimLines(file)+"\n", "\n"+trimLines(strings.TrimSpace(quoted))+"\n")
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// Each lock of package naive belongs to a step.
func TestEachNaiveLockHasAStep(t *testing.T) {
	files, err := filepath.Glob("naive/*.go")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "doc.go" || name == "scripts.go" {
			continue
		}
		if !slices.ContainsFunc(All(), func(s Step) bool { return s.Source == name }) {
			t.Errorf("no step shows naive/%s", name)
		}
	}
}

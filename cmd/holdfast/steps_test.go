package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/steps"
)

const stepsPage = "../../docs/steps.md"

var (
	aNumber   = regexp.MustCompile(`\d+(\.\d+)?`)
	pageBlock = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
	aPlay     = regexp.MustCompile(`(?s)\nThe naive lock .*?:\n\n(.*?)\n\nThe same with holdfast:\n\n(.*?\nIT .*?\.)\n\n`)
)

// Each step shows its bug, holdfast holds, and the page quotes what the command prints, but for
// numbers. UPDATE_STEPS=1 writes the quotations anew.
func TestSteps(t *testing.T) {
	if !measured() {
		t.Skip("real seconds pass, and the time of leases counts: make proof runs it")
	}
	text, err := os.ReadFile(stepsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for i, step := range steps.All() {
		t.Run(step.Title, func(t *testing.T) {
			if step.Pauses && stopSignal == nil {
				t.Skipf("%s: %v", runtime.GOOS, steps.ErrPause)
			}
			var out bytes.Buffer
			began := time.Now()
			s := &Steps{Which: fmt.Sprint(i + 1), Out: &out, Stderr: os.Stderr}
			if err := s.Run(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, &out)
			}
			if took := time.Since(began); took > steps.Limit {
				t.Errorf("it took %v, and at most %v is promised", took, steps.Limit)
			} else {
				t.Logf("%v\n%s", took, &out)
			}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(line) - 1; n > 80 && !strings.Contains(line, step.Right.Code) {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			for _, command := range step.Commands {
				if sent := withoutNumbers(command) + " ->"; !strings.Contains(withoutNumbers(out.String()), sent) && !strings.HasPrefix(command, "SUBSCRIBE") {
					t.Errorf("no process was seen to send %s", command)
				}
			}
			plays := aPlay.FindStringSubmatch(out.String())
			if plays == nil {
				t.Fatalf("no plays in\n%s", &out)
			}
			page = quotePlays(t, page, i+1, plays[1:])
		})
	}
	if os.Getenv("UPDATE_STEPS") != "" {
		if err := os.WriteFile(stepsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// quotePlays compares the blocks of a step behind its commands with the plays. It returns the page
// with the plays in their place.
func quotePlays(t *testing.T, page string, n int, plays []string) string {
	at := strings.Index(page, fmt.Sprintf("\n## %d. ", n))
	end := strings.Index(page, fmt.Sprintf("\n## %d. ", n+1))
	if end < 0 {
		end = len(page)
	}
	if at < 0 {
		t.Errorf("the page has no step %d", n)
		return page
	}
	section := page[at:end]
	blocks := pageBlock.FindAllStringSubmatchIndex(section, -1)
	if len(blocks) != 3 {
		t.Errorf("%d blocks of text in step %d of the page, want the commands and two plays", len(blocks), n)
		return page
	}
	for i := 2; i >= 1; i-- {
		from, to := blocks[i][2], blocks[i][3]
		has, want := section[from:to], outdent(plays[i-1])
		if os.Getenv("UPDATE_STEPS") == "" {
			printed := withoutNumbers(want)
			for line := range strings.Lines(has) {
				if line := withoutNumbers(line); !strings.Contains(printed, line) && !strings.Contains(line, "... the same") {
					t.Errorf("step %d of the page has %q, which the command did not print (UPDATE_STEPS=1 writes the page)", n, line)
				}
			}
		}
		section = section[:from] + want + section[to:]
	}
	return page[:at] + section + page[end:]
}

// outdent takes the indentation of a play away, and puts its verdict, the last paragraph, on one
// line.
func outdent(play string) string {
	lines, verdict, _ := strings.Cut(strings.TrimRight(play, "\n"), "\n\n")
	return strings.ReplaceAll("\n"+lines, "\n  ", "\n")[1:] + "\n\n" + strings.ReplaceAll(verdict, "\n", " ") + "\n"
}

// withoutNumbers is a text in which all numbers are the same, on one line.
func withoutNumbers(text string) string {
	return strings.Join(strings.Fields(aNumber.ReplaceAllString(text, "N")), " ")
}

// The list has each step, and nothing is started for it.
func TestStepsAreListed(t *testing.T) {
	var out bytes.Buffer
	if err := (&Steps{Out: &out}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, step := range steps.All() {
		if want := fmt.Sprintf("%2d  %s\n", i+1, step.Title); !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

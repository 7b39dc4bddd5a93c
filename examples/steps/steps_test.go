package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArg || os.Getenv("STEPS_AS_PROGRAM") != "" {
		main()
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process ends a second later under -race
	os.Exit(leak.Main(m))
}

const pageFile = "../../docs/steps.md"

var (
	numbers   = regexp.MustCompile(`\d+(\.\d+)?`)
	pageBlock = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	bothPlays = regexp.MustCompile(
		`(?s)\nThe naive lock .*?:\n\n(.*?)\n\nThe same with holdfast:\n\n(.*?\nIT .*?\.)\n\n`)
)

// A section is what docs/steps.md says of a step.
type section struct {
	text   string
	at     int     // in the page
	blocks [][]int // where the language and the code of its blocks are, as of pageBlock
}

func (s section) code(block int) string { return s.text[s.blocks[block][4]:s.blocks[block][5]] }

// readPage returns docs/steps.md and its sections.
func readPage(t *testing.T) (page string, sections []section) {
	t.Helper()
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	page = strings.ReplaceAll(string(text), "\r\n", "\n")
	for n, step := range steps {
		from := strings.Index(page, fmt.Sprintf("\n## %d. %s\n", n+1, step.title.english))
		if from < 0 {
			t.Fatalf("docs/steps.md has no section %d, %s", n+1, step.title.english)
		}
		end := len(page)
		if next := strings.Index(page[from+1:], "\n## "); next >= 0 {
			end = from + 1 + next
		}
		sections = append(sections,
			section{page[from:end], from, pageBlock.FindAllStringSubmatchIndex(page[from:end], -1)})
	}
	return page, sections
}

// Each section links the naive lock of its step, and its last block of code is in the file of the
// library that it links last. TestDocsGoIsCompiled of the root looks for the blocks of Go.
func TestPageQuotesTheCode(t *testing.T) {
	_, sections := readPage(t)
	link := regexp.MustCompile(`\]\(\.\./([^)]+)\)`)
	for n, section := range sections {
		if want := "](../examples/steps/naive/" + steps[n].source + ")"; !strings.Contains(section.text, want) {
			t.Errorf("step %d does not link %s", n+1, want)
		}
		if want := fmt.Sprintf("go run ./examples/steps %d`",
			n+1); !strings.Contains(strings.Join(strings.Fields(section.text), " "), want) {
			t.Errorf("step %d does not say %s", n+1, want)
		}
		links := link.FindAllStringSubmatch(section.text, -1)
		last := links[len(links)-1][1]
		code, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(last)))
		quoted := strings.TrimSpace(section.code(len(section.blocks) - 1))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(code), "\r\n", "\n"), quoted) {
			t.Errorf("step %d: %s does not have %q: %v", n+1, last, quoted, err)
		}
	}
}

// Each step shows its bug, holdfast holds, and the page quotes what the program prints, but for
// numbers. UPDATE_STEPS=1 writes the quotations anew.
func TestSteps(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("real seconds pass, and processes are killed: make proof runs it")
	}
	page, sections := readPage(t)
	for n := len(steps); n >= 1; n-- { // from the end: a new quotation moves what is after it
		t.Run(steps[n-1].title.english, func(t *testing.T) {
			if runtime.GOOS == "windows" && n == len(steps) {
				t.Skipf("%s cannot stop a process", runtime.GOOS)
			}
			var out bytes.Buffer
			began := time.Now()
			if err := run(t.Context(), []string{"--lang", "en", fmt.Sprint(n)}, os.Getenv, &out); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			t.Logf("%v\n%s", time.Since(began), &out)
			if took := time.Since(began); took > limit {
				t.Errorf("it took %v, and at most %v is promised", took, limit)
			}
			section := sections[n-1]
			for command := range strings.Lines(section.code(0)) {
				if sent := maskNumbers(command) + " ->"; !strings.Contains(maskNumbers(out.String()), sent) &&
					!strings.HasPrefix(command, "SUBSCRIBE") {
					t.Errorf("no process was seen to send %s", command)
				}
			}
			played := bothPlays.FindStringSubmatch(out.String())
			if played == nil || len(section.blocks) < 4 {
				t.Fatalf("no plays in\n%s\nor in\n%s", &out, section.text)
			}
			for i := 2; i >= 1; i-- {
				block, want := section.blocks[len(section.blocks)-4+i], quote(played[i])
				if os.Getenv("UPDATE_STEPS") == "" {
					compare(t, section.text[block[4]:block[5]], want)
				}
				page = page[:section.at+block[4]] + want + page[section.at+block[5]:]
			}
		})
	}
	if os.Getenv("UPDATE_STEPS") != "" {
		if err := os.WriteFile(pageFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func compare(t *testing.T, page, printed string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if !strings.Contains(maskNumbers(printed), maskNumbers(line)) && !strings.Contains(line, "... the same") {
			t.Errorf("the page has %q, which was not printed (UPDATE_STEPS=1 writes the page)", line)
		}
	}
}

// quote takes the indentation of a play away.
func quote(play string) string { return strings.ReplaceAll("\n"+play, "\n  ", "\n")[1:] + "\n" }

var barPattern = regexp.MustCompile(`\|[ =:]+\|`)

// maskNumbers is a text in which all numbers are the same, and all bars, on one line.
func maskNumbers(text string) string {
	text = barPattern.ReplaceAllString(numbers.ReplaceAllString(text, "N"), "|=|")
	return strings.Join(strings.Fields(text), " ")
}

func noEnv(string) string { return "" }

func TestRunListsAndRefuses(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, noEnv, &out); err != nil ||
		!strings.Contains(out.String(), " 1  EXISTS, then SET\n") {
		t.Errorf("got %v, %s", err, &out)
	}
	for _, args := range [][]string{{"0"}, {"99"}, {"first"}, {"1", "2"}} {
		if err := run(t.Context(), args, noEnv, &out); err == nil ||
			!strings.Contains(err.Error(), "it must be 1 to 20, or all") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

// A play that fails is not judged, and the processes end.
func TestPerformEndsAPlayThatFails(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var out bytes.Buffer
	_, err := perform(ctx, &out, func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.start("A", "unique", way.Addr())
		way.HoldRequest("set")
		a.begin(orderTry)
		cancel(enough)
		a.answer()
		panic("the play went on")
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// inside is a tenure in milliseconds.
func inside(name string, from, to int) tenure {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	return tenure{Name: name, From: at(from), To: at(to)}
}

func TestVerdictOfTenures(t *testing.T) {
	for name, c := range map[string]struct {
		list            []tenure
		together, apart verdict
	}{
		"one after the other": {
			[]tenure{inside("A", 0, 10), inside("B", 12, 20)},
			verdict{false, "no two processes were inside together"},
			verdict{true, "the answer: never two inside; B got in 2 ms after A stopped working"},
		},
		"two at once": {
			[]tenure{inside("A", 0, 15), inside("B", 12, 20)},
			verdict{true, "the bug: A and B were inside together for 3 ms"},
			verdict{false, "A and B were inside together for 3 ms"},
		},
		"the longest counts": {
			[]tenure{inside("A", 0, 15), inside("B", 12, 40), inside("C", 20, 40)},
			verdict{true, "the bug: B and C were inside together for 20 ms"},
			verdict{false, "B and C were inside together for 20 ms"},
		},
		"a process beside itself": {
			[]tenure{inside("A", 0, 15), inside("A", 12, 20)},
			verdict{false, "no two processes were inside together"},
			verdict{false, "inside were A, A, and not A, B"},
		},
		"nobody": {
			nil,
			verdict{false, "no two processes were inside together"},
			verdict{false, "inside were none, and not A, B"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := together("the bug", c.list); got != c.together {
				t.Errorf("together: got %+v, want %+v", got, c.together)
			}
			if got := apart("the answer", c.list, "A", "B"); got != c.apart {
				t.Errorf("apart: got %+v, want %+v", got, c.apart)
			}
		})
	}
}

func TestBarOfTenures(t *testing.T) {
	list := []tenure{inside("A", 0, 20), inside("B", 21, 60), inside("A", 58, 58)}
	from, to := time.UnixMilli(0), time.UnixMilli(60)
	for process, want := range map[string]string{
		"A": "====================                                      : ",
		"B": "                     =======================================",
	} {
		if got := bar(list, process, from, to); got != want {
			t.Errorf("%s: got %q, want %q", process, got, want)
		}
	}
}

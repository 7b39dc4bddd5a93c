package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"
)

// A timeline prints what happens, one line for each event, with the time since it began. A process
// that does the same again and again gets one line, and later another with the number. A timeline
// is safe for concurrent use.
type timeline struct {
	out   io.Writer
	began time.Time

	mu     sync.Mutex
	last   map[string]repeated // by process
	tokens []string
}

type repeated struct {
	text  string
	times int // since it was printed
}

func newTimeline(out io.Writer) *timeline {
	return &timeline{out: out, began: time.Now(), last: map[string]repeated{}}
}

// add tells an event of a process, or of the play if who is empty.
func (t *timeline) add(who, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch last := t.last[who]; {
	case who == "":
		t.moreOfAll()
		t.line("-", text)
	case last.text == text:
		t.last[who] = repeated{text, last.times + 1}
	default:
		t.more(who)
		t.line(who, text)
		t.last[who] = repeated{text: text}
	}
}

// more tells how often a process repeated its last line.
func (t *timeline) more(who string) {
	last := t.last[who]
	if last.times > 0 {
		fmt.Fprintf(t.out, "  %7s  %-2s "+text("... the same, %d more")+"\n", "", who, last.times)
		t.last[who] = repeated{text: last.text}
	}
}

func (t *timeline) moreOfAll() {
	for _, who := range slices.Sorted(maps.Keys(t.last)) {
		t.more(who)
	}
}

func (t *timeline) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moreOfAll()
}

// A token of holdfast has 16 digits.
var longToken = regexp.MustCompile(`\b\d{16}\b`)

// line prints one line. It numbers the tokens: #1 is the first that is printed, and so on.
func (t *timeline) line(who, text string) {
	text = longToken.ReplaceAllStringFunc(text, func(token string) string {
		if !slices.Contains(t.tokens, token) {
			t.tokens = append(t.tokens, token)
		}
		return fmt.Sprintf("#%d", slices.Index(t.tokens, token)+1)
	})
	fmt.Fprintf(t.out, "  %6.3fs  %-2s %s\n", time.Since(t.began).Seconds(), who, text)
}

// formatTime is a duration for people: milliseconds below a second, and else seconds with two
// digits.
func formatTime(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func formatCommands(n int) string {
	if n == 1 {
		return text("1 command")
	}
	return fmt.Sprintf(text("%d commands"), n)
}

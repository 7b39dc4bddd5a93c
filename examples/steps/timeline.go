package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
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

// barWidth is the number of columns of a bar, and mostBars how many bars can be read.
const (
	barWidth = 60
	mostBars = 3
)

// drawBars draws who was inside when, a bar for each process, from the begin of a play to its end.
// The bars are ASCII, since a terminal for Chinese draws others twice as wide.
func drawBars(out io.Writer, from, to time.Time, list []tenure) {
	var processes []string
	for _, t := range list {
		if !slices.Contains(processes, t.Name) {
			processes = append(processes, t.Name)
		}
	}
	if len(processes) == 0 || len(processes) > mostBars {
		return
	}
	slices.Sort(processes)
	fmt.Fprintf(out, "\n  "+text("Inside, from 0 to %.3fs:")+"\n", to.Sub(from).Seconds())
	for _, process := range processes {
		fmt.Fprintf(out, "  %s |%s|\n", process, bar(list, process, from, to))
	}
}

// bar is the line of one process. A column is drawn if the process was inside at the middle of its
// time, so that two tenures one after the other share no column. A tenure between two middles is a
// colon.
func bar(list []tenure, process string, from, to time.Time) string {
	column := max(to.Sub(from)/barWidth, 1)
	columns := []byte(strings.Repeat(" ", barWidth))
	for _, t := range list {
		if t.Name != process {
			continue
		}
		drawn := false
		for i := range columns {
			middle := from.Add(time.Duration(i)*column + column/2)
			if !t.From.After(middle) && t.To.After(middle) {
				columns[i], drawn = '=', true
			}
		}
		if i := min(max(int(t.From.Sub(from)/column), 0), barWidth-1); !drawn && columns[i] == ' ' {
			columns[i] = ':'
		}
	}
	return string(columns)
}

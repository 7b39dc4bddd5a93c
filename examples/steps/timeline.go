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

// A timeline prints what happens, one line for each event, with the time since it began. Reports of
// several processes arrive in any order, so each line is kept back for a moment, and the lines are
// printed in the order of their times. A process that does the same again and again gets one line,
// and later another with the number. A timeline is safe for concurrent use until finish.
type timeline struct {
	out   io.Writer
	began time.Time
	quit  chan struct{}
	done  sync.WaitGroup

	mu      sync.Mutex
	pending []entry

	// Of the goroutine that prints:
	last   map[string]repeated // by process
	tokens []string
}

// An entry is an event of a process, or of the play if who is empty.
type entry struct {
	at        time.Time
	who, text string
}

type repeated struct {
	text  string
	times int // since it was printed
}

// settle is how long a line is kept back.
const settle = 100 * time.Millisecond

func newTimeline(out io.Writer) *timeline {
	t := &timeline{out: out, began: time.Now().Round(0), quit: make(chan struct{}), last: map[string]repeated{}}
	t.done.Go(func() {
		tick := time.NewTicker(settle / 2)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				t.print(t.before(now.Add(-settle)))
			case <-t.quit:
				return
			}
		}
	})
	return t
}

// add takes an event down.
func (t *timeline) add(at time.Time, who, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, entry{at.Round(0), who, text})
}

// before takes the entries before a time out, in order. The zero time takes all.
func (t *timeline) before(limit time.Time) (list []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.pending, func(a, b entry) int { return a.at.Compare(b.at) })
	n := len(t.pending)
	if !limit.IsZero() {
		n = 0
		for n < len(t.pending) && t.pending[n].at.Before(limit) {
			n++
		}
	}
	list = slices.Clone(t.pending[:n])
	t.pending = slices.Delete(t.pending, 0, n)
	return list
}

// finish prints what is not yet printed.
func (t *timeline) finish() {
	close(t.quit)
	t.done.Wait()
	t.print(t.before(time.Time{}))
	t.flush()
}

func (t *timeline) print(list []entry) {
	for _, e := range list {
		switch last := t.last[e.who]; {
		case e.who == "":
			t.flush()
			e.who = "-"
			t.line(e)
		case last.text == e.text:
			t.last[e.who] = repeated{e.text, last.times + 1}
		default:
			t.more(e.who)
			t.line(e)
			t.last[e.who] = repeated{text: e.text}
		}
	}
}

// more tells how often a process repeated its last line.
func (t *timeline) more(who string) {
	last := t.last[who]
	if last.times > 0 {
		fmt.Fprintf(t.out, "  %7s  %-2s ... the same, %d more\n", "", who, last.times)
		t.last[who] = repeated{text: last.text}
	}
}

// flush does that for all processes.
func (t *timeline) flush() {
	for _, who := range slices.Sorted(maps.Keys(t.last)) {
		t.more(who)
	}
}

// A token of holdfast has 16 digits.
var longToken = regexp.MustCompile(`\b\d{16}\b`)

// line prints one line. It numbers the tokens: #1 is the first that is printed, and so on.
func (t *timeline) line(e entry) {
	text := longToken.ReplaceAllStringFunc(e.text, func(token string) string {
		if !slices.Contains(t.tokens, token) {
			t.tokens = append(t.tokens, token)
		}
		return fmt.Sprintf("#%d", slices.Index(t.tokens, token)+1)
	})
	fmt.Fprintf(t.out, "  %6.3fs  %-2s %s\n", e.at.Sub(t.began).Seconds(), e.who, text)
}

// formatTime is a duration for people: milliseconds below a second, and else seconds with two
// digits.
func formatTime(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// formatCommands is a number of commands.
func formatCommands(n int) string {
	if n == 1 {
		return "1 command"
	}
	return fmt.Sprintf("%d commands", n)
}

package board

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lottery"
)

var colour = regexp.MustCompile(`\x1b\[[0-9]*m`)

// played is a model in the midst of a lottery.
func played(workers, rounds int) *model {
	m := newModel(Facts{Rounds: rounds, Server: "Redis 7.0.15", TTL: 2 * time.Second, Workers: workers}, func() {})
	view := func(e lottery.Event) {
		var told strings.Builder
		lottery.Plain(&told)(e)
		m.note(happened{e, told.String()})
	}
	for round := 1; round <= rounds; round++ {
		view(lottery.Event{Kind: lottery.Opened, Round: round, Others: workers})
		view(lottery.Event{Kind: lottery.Holds, Round: round, Worker: 2, Token: 1 << 50, Until: m.now.Add(time.Second)})
		view(lottery.Event{Kind: lottery.Entered, Round: round, Worker: 2, Token: 1 << 50})
		view(lottery.Event{Kind: lottery.Drawn, Round: round, Worker: 2, Token: 1 << 50, Ticket: 7})
	}
	return m
}

func TestFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}, {20, 5}, {1, 1}} {
		for _, workers := range []int{2, 8, 32} {
			t.Run(fmt.Sprintf("%dx%d, %d workers", size[0], size[1], workers), func(t *testing.T) {
				m := played(workers, 50)
				m.width, m.height = size[0], size[1]
				lines := m.lines()
				if len(lines) > size[1] {
					t.Errorf("%d lines", len(lines))
				}
				text := colour.ReplaceAllString(strings.Join(lines, "\n"), "")
				for line := range strings.Lines(text) {
					if n := utf8.RuneCountInString(strings.TrimRight(line, "\n ")); n > size[0] && size[0] >= 40 {
						t.Errorf("%d columns: %q", n, line)
					}
				}
				if size[0] < 80 {
					return
				}
				for _, want := range []string{"worker 2 holds the lock, token 1125899906842624", "█░", "1.0 s of 2s", "round 50 of 50", " 2 HOLDS", " 1 waits"} {
					if !strings.Contains(text, want) {
						t.Errorf("no %q in\n%s", want, text)
					}
				}
			})
		}
	}
}

func TestNotes(t *testing.T) {
	m := played(4, 3)
	for _, e := range []lottery.Event{
		{Kind: lottery.Opened, Round: 1},
		{Kind: lottery.Holds, Round: 1, Worker: 3, Token: 5},
		{Kind: lottery.Killed, Round: 1, Worker: 3},
		{Kind: lottery.Opened, Round: 2},
		{Kind: lottery.Holds, Round: 2, Worker: 1, Token: 6},
		{Kind: lottery.Stopped, Round: 2, Worker: 1},
		{Kind: lottery.Holds, Round: 2, Worker: 2, Token: 7},
		{Kind: lottery.Lost, Round: 2, Worker: 1},
	} {
		m.note(happened{Event: e})
	}
	if got := strings.Join(m.workers, ","); got != "lost its lease,HOLDS,killed,waits" {
		t.Errorf("workers %s", got)
	}
	if m.holder != 2 || m.token != 7 || m.marks[0] != "K" || m.marks[1] != "S" {
		t.Errorf("holder %d, token %d, marks %v", m.holder, m.token, m.marks)
	}
}

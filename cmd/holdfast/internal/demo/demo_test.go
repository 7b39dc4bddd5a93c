package demo

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// lotteryOf is a lottery of one round whose workers reported this. err is about the last report.
func lotteryOf(reports ...report) (l *lottery, err error) {
	l = newLottery(Config{Workers: 3, Rounds: 1, TTL: time.Second})
	l.Round = 1
	for _, r := range reports {
		err = l.judge(r)
	}
	return l, err
}

func entryReport(worker int, token int64) report {
	return report{Worker: worker, Step: entered, Token: token}
}

func exitReport(worker int, token int64, ticket int) report {
	return report{Worker: worker, Step: leaving, Token: token, Ticket: ticket}
}

// hasText reports whether an error has this text. No text: there is no error.
func hasText(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

func TestLotteryJudgesReports(t *testing.T) {
	for name, c := range map[string]struct {
		reports             []report
		draws               int
		wantBroken, wantEnd string
	}{
		"one after the other": {
			[]report{entryReport(1, 1), exitReport(1, 1, 7), entryReport(2, 2), exitReport(2, 2, 0)},
			1, "", ""},
		"two at once": {[]report{entryReport(1, 1), entryReport(2, 2)}, 0,
			"worker 2: got the lock while worker 1 held", ""},
		"token goes back": {[]report{entryReport(1, 5), exitReport(1, 5, 7), entryReport(2, 4)}, 1,
			"token 4 came after 5", ""},
		"token stands": {[]report{entryReport(1, 5), exitReport(1, 5, 7), entryReport(2, 5)}, 1,
			"token 5 came after 5", ""},
		"draws without a token": {[]report{exitReport(1, 0, 7)}, 0, "draw REFUSED by the ledger: token 0 is not larger", ""},
		"draws with an old one": {[]report{exitReport(1, 5, 7), exitReport(2, 5, 8)}, 1,
			"draw REFUSED by the ledger: token 5 is", ""},
		// A refused token must not count as seen: a late worker could shut out the right one.
		"all draw": {[]report{exitReport(1, 1, 7), exitReport(2, 2, 8), exitReport(3, 2, 9)}, 1,
			"2 double draws were tried", ""},
		"nobody draws": {[]report{exitReport(1, 1, 0), exitReport(2, 2, 0), exitReport(3, 3, 0)}, 0, "", "nobody drew"},
		// The others would wait until the end of the demo for a worker that cannot go on.
		"worker ends": {[]report{{Worker: 2, Step: ended, Failed: "exit 2"}}, 0, "worker 2: exit 2",
			"worker 2 could not go on"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := lotteryOf(c.reports...)
			if broken := l.findBroken(); l.draws != c.draws || !hasText(broken, c.wantBroken) ||
				!hasText(err, c.wantEnd) {
				t.Errorf("%d draws, %v, %v; want %d, %q, %q", l.draws, broken, err, c.draws, c.wantBroken, c.wantEnd)
			}
		})
	}
}

func TestLotteryJudgesTrials(t *testing.T) {
	const limit = 2200 * time.Millisecond
	for _, c := range []struct {
		trial trial
		want  string // in what is broken
	}{
		{trial{task: stop, took: limit, seen: "; late draw refused; loss seen"}, ""},
		{trial{task: stop, took: limit, seen: "; loss seen"}, "after the stop"},
		{trial{task: stop, took: limit, seen: "; late draw refused"}, "after the stop"},
		{trial{task: overstay, took: limit, seen: "; loss seen"}, ""},
		{trial{task: overstay, took: limit}, "after the grant"},
		{trial{task: kill, took: limit}, ""},
		{trial{task: kill, took: limit + 1}, "replaced 2.200000001s after the kill, limit 2.2s"},
		{trial{task: kill}, "replaced 0s after the kill"},
	} {
		l, _ := lotteryOf()
		l.trial, l.trial.worker, l.trial.limit = c.trial, 1, limit
		if l.endTrial(); !hasText(l.findBroken(), c.want) {
			t.Errorf("%+v: got %v", c, l.findBroken())
		}
	}
}

func TestLotteryMeasuresHandOvers(t *testing.T) {
	l, _ := lotteryOf(entryReport(1, 1), exitReport(1, 1, 7))
	for i, granted := range []time.Duration{3 * time.Millisecond, time.Second} {
		r := entryReport(2+i, int64(2+i))
		r.Waiting, r.Granted = l.released.Add(granted-5*time.Millisecond), l.released.Add(granted)
		_, _ = l.judge(r), l.judge(exitReport(r.Worker, r.Token, 0))
	}
	// Worker 3 came to a free lock.
	if want := []time.Duration{3 * time.Millisecond, 5 * time.Millisecond}; !slices.Equal(l.handOvers, want) {
		t.Errorf("got %v, want %v", l.handOvers, want)
	}
}

func TestScreenFitsTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {100, 30}, {200, 50}, {40, 10}, {20, 5}, {1, 1}} {
		for _, workers := range []int{2, 8, 32} {
			width, height := size[0], size[1]
			synctest.Test(t, func(t *testing.T) {
				s := &screen{config: Config{Rounds: 50}, server: "an in-memory server inside this program"}
				s.Update(tea.WindowSizeMsg{Width: width, Height: height})
				l := newLottery(Config{Workers: workers, Rounds: 50, View: func(state State) { s.Update(state) }})
				for l.Round < 50 {
					l.open()
					l.tell(2, "learns that its lease is lost: no renewal was confirmed in time")
					l.show()
				}
				s.Doing[0], s.Doing[1], s.Holder, s.Token = "waits", "HOLDS", 2, "#50"
				s.Until, s.Lasts = time.Now().Add(time.Second), 2*time.Second
				text := ansi.Strip(s.View().Content)
				if n := strings.Count(text, "\n") + 1; n > height {
					t.Errorf("%dx%d: %d lines", width, height, n)
				}
				for line := range strings.SplitSeq(text, "\n") {
					if n := utf8.RuneCountInString(line); n > width || width >= 80 && strings.Contains(line, "…") {
						t.Errorf("%dx%d: %d columns: %q", width, height, n, line)
					}
				}
				for _, want := range []string{
					"The noon", "worker 2 holds the lock, token #50", "█░", "1.0 s of 2s", "round 50 of 50", " 2 HOLDS",
					" 1 waits",
				} {
					if width >= 80 && !strings.Contains(text, want) {
						t.Errorf("%dx%d: no %q in\n%s", width, height, want, text)
					}
				}
			})
		}
	}
}

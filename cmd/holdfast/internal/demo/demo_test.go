package demo

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// judged is a lottery in round 1 whose workers reported this.
func judged(reports ...report) *lottery {
	l := newLottery(Config{Workers: 3, Rounds: 9, TTL: time.Second, View: func(State) {}})
	l.Round = 1
	for _, r := range reports {
		_ = l.judge(r)
	}
	return l
}

func enters(worker int, token int64) report {
	return report{Worker: worker, Step: entered, Token: token}
}

func leaves(worker int, token int64, ticket int) report {
	return report{Worker: worker, Step: leaving, Token: token, Ticket: ticket}
}

func TestLotteryJudgesReports(t *testing.T) {
	for name, c := range map[string]struct {
		reports []report
		draws   int
		want    string // in what is broken
	}{
		"one after the other":   {[]report{enters(1, 1), leaves(1, 1, 7), enters(2, 2), leaves(2, 2, 0)}, 1, ""},
		"two at once":           {[]report{enters(1, 1), enters(2, 2), leaves(1, 1, 7)}, 1, "worker 2: got the lock while worker 1 held"},
		"token goes back":       {[]report{enters(1, 5), leaves(1, 5, 7), enters(2, 4), leaves(2, 4, 0)}, 1, "token 4 came after 5"},
		"token stands":          {[]report{enters(1, 5), leaves(1, 5, 7), enters(2, 5), leaves(2, 5, 0)}, 1, "token 5 came after 5"},
		"both draw":             {[]report{enters(1, 1), leaves(1, 1, 7), enters(2, 2), leaves(2, 2, 8)}, 1, "1 double draws were tried"},
		"draws without a token": {[]report{leaves(1, 0, 7)}, 0, "draw REFUSED by the ledger: token 0 is not larger"},
		"draws with an old one": {[]report{leaves(1, 5, 7), leaves(2, 5, 8)}, 1, "draw REFUSED by the ledger: token 5 is not"},
		// A refused token must not count as seen: a late worker could shut out the right one.
		"refused, then a good one": {[]report{leaves(1, 5, 7), leaves(2, 99, 8), {Step: ready, Worker: 1}}, 1, "1 double draws"},
		"worker fails":             {[]report{{Worker: 2, Step: ready, Failed: "release: no server"}}, 0, "worker 2: release: no server"},
		"worker ends":              {[]report{{Worker: 2, Step: ended, Failed: "exit 2"}}, 0, "round 1, worker 2: exit 2"},
		"loses its lease":          {[]report{enters(1, 1), {Worker: 1, Step: leaving, Lost: "gone"}}, 0, "0 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := judged(c.reports...)
			l.Rounds = 1
			if err := l.broken(); len(l.winners) != c.draws || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d draws, %v; want %d, %q", len(l.winners), err, c.draws, c.want)
			}
			if l.largest == 99 {
				t.Error("the ledger took the token of a refused draw")
			}
		})
	}
	// The others would wait until the end of the demo for a worker that cannot go on.
	for _, step := range []string{ready, ended} {
		if judged().judge(report{Worker: 2, Step: step, Failed: "no server"}) == nil {
			t.Errorf("%s with a failure does not end the lottery", step)
		}
	}
}

func TestLotteryBrokenPromises(t *testing.T) {
	for want, spoil := range map[string]func(*lottery){
		"":                              func(*lottery) {},
		"2 of 3 rounds":                 func(l *lottery) { delete(l.winners, 2) },
		"1 double draws":                func(l *lottery) { l.doubles = 1 },
		"nobody took over after the ki": func(l *lottery) { l.trials[2].took = 0 },
		"came 2.201s after the grant":   func(l *lottery) { l.trials[1].took = 2201 * time.Millisecond },
		"after the grant the holder di": func(l *lottery) { l.trials[1].lost = false },
		"late draw after the stop was":  func(l *lottery) { l.trials[0].refused = false },
		"gone":                          func(l *lottery) { _ = l.problem(1, "gone") },
	} {
		l := judged()
		l.Rounds, l.winners = 3, map[int]int{1: 1, 2: 1, 3: 1}
		for _, kind := range []trial{stop, overstay, kill} {
			l.trials = append(l.trials, &outcome{kind: kind, took: time.Second, limit: 2200 * time.Millisecond, lost: kind != kill, refused: kind == stop})
		}
		spoil(l)
		if err := l.broken(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestHandOvers(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(1000 + ms)) }
	got := handOvers([]turn{
		{round: 1, worker: 1, waiting: at(0), at: at(0), released: at(50)},
		{round: 1, worker: 2, waiting: at(0), at: at(53), released: at(60)},
		{round: 1, worker: 3, waiting: at(0), at: at(61)},                    // killed
		{round: 1, worker: 4, waiting: at(0), at: at(90), released: at(95)},  // a take-over
		{round: 1, worker: 5, waiting: at(96), at: at(97), released: at(98)}, // came to a free lock
		{round: 2, worker: 1, waiting: at(90), at: at(99), released: at(100)},
		{round: 2, worker: 2, waiting: at(90), at: at(95), released: at(100)}, // overlaps
	})
	if !slices.Equal(got, []time.Duration{time.Millisecond, 3 * time.Millisecond}) {
		t.Errorf("got %v", got)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.25: 1, 0.5: 2, 0.99: 4, 1: 4} {
		if got := quantile([]time.Duration{1, 2, 3, 4}, q); got != want {
			t.Errorf("quantile %v: got %d, want %d", q, got, want)
		}
	}
}

func TestScreenFitsTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {100, 30}, {200, 50}, {40, 10}, {20, 5}, {1, 1}} {
		for _, workers := range []int{2, 8, 32} {
			s := &screen{config: Config{Rounds: 50, TTL: 2 * time.Second}, server: "an in-memory server inside this program"}
			s.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			l := newLottery(Config{Workers: workers, Rounds: 50, View: func(state State) { s.Update(state) }})
			for l.Round < 50 {
				l.open()
				l.tell(2, "✓", "HOLDS", "learns that its lease is lost: no renewal was confirmed in time")
				l.show()
			}
			s.Doing[0], s.Holder, s.Token, s.Until = "waits", 2, "#50", s.now.Add(time.Second)
			text := ansi.Strip(s.View().Content)
			if n := strings.Count(text, "\n") + 1; n > size[1] {
				t.Errorf("%v: %d lines", size, n)
			}
			for line := range strings.SplitSeq(text, "\n") {
				if n := utf8.RuneCountInString(line); n > size[0] || size[0] >= 80 && strings.Contains(line, "…") {
					t.Errorf("%v: %d columns: %q", size, n, line)
				}
			}
			for _, want := range []string{"worker 2 holds the lock, token #50", "█░", "1.0 s of 2s", "round 50 of 50", " 2 HOLDS", " 1 waits"} {
				if size[0] >= 80 && !strings.Contains(text, want) {
					t.Errorf("%v: no %q in\n%s", size, want, text)
				}
			}
		}
	}
}

package lottery

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// told is a hall whose workers say what a test makes them say; nobody is killed in it.
func told(reports ...func(*referee)) *Result {
	r := newReferee(&Hall{Workers: 3, TTL: time.Second})
	for _, report := range reports {
		report(r)
	}
	return r.result()
}

func enters(worker int, token int64) func(*referee) {
	return says(worker, report{Step: entered, Round: 1, Token: token})
}

func leaves(worker int) func(*referee) { return says(worker, report{Step: left, Round: 1}) }

func draws(worker int, token int64) func(*referee) {
	return says(worker, report{Step: drew, Round: 1, Token: token})
}

func says(worker int, m report) func(*referee) {
	return func(r *referee) { r.said(&player{number: worker, out: json.NewEncoder(io.Discard)}, m) }
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		reports                                    []func(*referee)
		turns, overlaps, backwards, doubles, stale int
	}{
		"one after the other": {[]func(*referee){enters(1, 1), draws(1, 1), leaves(1), enters(2, 2), leaves(2)}, 2, 0, 0, 0, 0},
		"two at once":         {[]func(*referee){enters(1, 1), enters(2, 2), leaves(1), leaves(2)}, 2, 1, 0, 0, 0},
		"token goes back":     {[]func(*referee){enters(1, 5), leaves(1), enters(2, 4), leaves(2)}, 2, 0, 1, 0, 0},
		"token stands":        {[]func(*referee){enters(1, 5), leaves(1), enters(2, 5), leaves(2)}, 2, 0, 1, 0, 0},
		"both draw":           {[]func(*referee){enters(1, 1), draws(1, 1), leaves(1), enters(2, 2), draws(2, 2)}, 2, 0, 0, 1, 0},
		"draws with nothing":  {[]func(*referee){draws(1, 0)}, 0, 0, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(test.reports...)
			if r.Turns != test.turns || r.Overlaps != test.overlaps || r.Backwards != test.backwards ||
				r.Doubles != test.doubles || r.Stale != test.stale {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// One that cannot go on may hold the lock: the others would wait until the demo's time is over.
func TestJudgeStopsWhenAWorkerCannotGoOn(t *testing.T) {
	for name, report := range map[string]func(*referee){
		"failed": says(2, report{Step: done, Round: 1, Failed: "release: no server"}),
		"ended":  func(r *referee) { r.ended(&player{number: 2}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReferee(&Hall{Workers: 3})
			report(r)
			if err := r.wait(t.Context(), r.all); err == nil || len(r.result().Problems) != 1 {
				t.Errorf("error %v, problems %q", err, r.result().Problems)
			}
		})
	}
}

func TestResultErr(t *testing.T) {
	fresh := func() Result {
		allowed := 2200 * time.Millisecond
		return Result{Rounds: 3, Draws: 3, Incidents: []Incident{
			{Trial: Stop, Took: time.Second, Allowed: allowed, Lost: true, Refused: true},
			{Trial: Overstay, Took: time.Second, Allowed: allowed, Lost: true},
			{Trial: Kill, Took: time.Second, Allowed: allowed},
		}}
	}
	good := fresh()
	if err := good.Err(); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	for want, spoil := range map[string]func(*Result){
		"2 of 3 rounds":                 func(r *Result) { r.Draws = 2 },
		"1 double draws":                func(r *Result) { r.Doubles = 1 },
		"1 draws came with an old":      func(r *Result) { r.Stale = 1 },
		"1 times two held":              func(r *Result) { r.Overlaps = 1 },
		"1 tokens did not grow":         func(r *Result) { r.Backwards = 1 },
		"nobody took over after the ki": func(r *Result) { r.Incidents[2].Took = 0 },
		"took 2.201s, more than 2.2s":   func(r *Result) { r.Incidents[1].Took = 2201 * time.Millisecond },
		"after it came the holder did":  func(r *Result) { r.Incidents[1].Lost = false },
		"late draw after the stop was":  func(r *Result) { r.Incidents[0].Refused = false },
		"round 1, worker 2: lock: gone": func(r *Result) { r.Problems = []string{"round 1, worker 2: lock: gone"} },
	} {
		t.Run(want, func(t *testing.T) {
			bad := fresh()
			spoil(&bad)
			if err := bad.Err(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestHandOvers(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(1000 + ms)) }
	got := handOvers([]turn{
		{round: 1, worker: 1, since: at(0), at: at(0), released: at(50)},
		{round: 1, worker: 2, since: at(0), at: at(53), released: at(60)},
		{round: 1, worker: 3, since: at(0), at: at(61)},                    // killed
		{round: 1, worker: 4, since: at(0), at: at(90), released: at(95)},  // no hand-over: a take-over
		{round: 1, worker: 5, since: at(96), at: at(97), released: at(98)}, // came when the lock was free
		{round: 2, worker: 1, since: at(90), at: at(99), released: at(100)},
		{round: 2, worker: 2, since: at(90), at: at(95), released: at(100)}, // overlaps: counted elsewhere
	})
	if want := []time.Duration{time.Millisecond, 3 * time.Millisecond}; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for name, test := range map[string]struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		"none":     {nil, 0.5, 0},
		"one":      {hundred[:1], 0.99, 1},
		"p50 of 4": {hundred[:4], 0.5, 2},
		"p50":      {hundred, 0.5, 50},
		"p99":      {hundred, 0.99, 99},
		"least":    {hundred, 0, 1},
		"most":     {hundred, 1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quantile(test.sorted, test.q); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

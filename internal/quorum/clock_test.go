package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// A ceiling ends no hold before trust in it does, however slow the answers were that tell of the
// node's clock. If they were fast it is no later than the end.
func TestClockCeilingIsNotBeforeEndOfTrust(t *testing.T) {
	const server = 100_000_000
	sent := time.Now()
	for name, test := range map[string]struct{ took, end, margin, want time.Duration }{
		"a fast answer": {time.Millisecond, 10 * time.Second, 105 * time.Millisecond,
			10*time.Second - time.Millisecond},
		"a slow answer": {400 * time.Millisecond, 10 * time.Second, 300 * time.Millisecond,
			9700*time.Millisecond + 97*time.Millisecond},
		"a slow answer, and no trust": {400 * time.Millisecond, 10 * time.Second, 0,
			10*time.Second - 400*time.Millisecond},
	} {
		var c clock
		if c.forward(server, 1, sent, sent.Add(test.took), leap) {
			t.Fatal("the first answer says nothing")
		}
		end, trusted := sent.Add(test.end), time.Time{}
		if test.margin > 0 {
			trusted = end.Add(-test.margin)
		}
		if got, want := c.ceiling(end, trusted), wire.Digits16(server+test.want.Microseconds()); got != want {
			t.Errorf("%s: the ceiling is %s, want %s", name, got, want)
		}
	}
	if got := new(clock).ceiling(sent, sent); got != "" {
		t.Errorf("of an unknown clock: %q", got)
	}
}

// An answer may show at most the time of an earlier one, plus the time since that was sent.
func TestClockForwardByMoreThanLeap(t *testing.T) {
	const old, known = 1_000_000, 100_000_000 // microseconds of the node
	for _, test := range []struct {
		name           string
		sent, received time.Duration // since the answer that is known was asked for
		now            time.Duration // since what that said
		born           int64
		want           bool
	}{
		{"in time", 10 * time.Second, 10 * time.Second, 10 * time.Second, old, false},
		{"slow", 10 * time.Second, 10 * time.Second, 9 * time.Second, old, false},
		{"set back", 10 * time.Second, 10 * time.Second, -time.Hour, old, false},
		{"fast by one in a hundred", 30 * time.Second, 30 * time.Second, 30*time.Second + 300*time.Millisecond, old,
			false},
		{"a little ahead", 0, 0, leap, old, false},
		{"ahead", 0, 0, leap + time.Microsecond, old, true},
		{"ahead, and fast", 10 * time.Second, 10 * time.Second, 10*time.Second + 100*time.Millisecond + leap +
			time.Microsecond, old, true},
		{"decided late", 0, 10 * time.Second, 10 * time.Second, old, false},
		{"ahead, as others know", 10 * time.Second, 10 * time.Second, time.Hour, known + time.Hour.Microseconds() - 1,
			false},
		{"ahead, and younger", 10 * time.Second, 10 * time.Second, time.Hour, known + 1, true},
		{"ahead, as others know for long", 10 * time.Minute, 10 * time.Minute, 11 * time.Minute,
			known + 2*time.Minute.Microseconds(), false},
		{"younger, and older than it can be", 10 * time.Minute, 10 * time.Minute, time.Hour,
			known + 2*time.Minute.Microseconds(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c clock
			start := time.Now()
			if c.forward(known, old, start, start.Add(time.Millisecond), leap) {
				t.Fatal("the first answer says nothing")
			}
			now := known + test.now.Microseconds()
			for range 2 { // what is ahead stays so, until it is set
				got := c.forward(now, test.born, start.Add(test.sent), start.Add(test.received), leap)
				if got != test.want {
					t.Errorf("got %v", got)
				}
			}
			c.set(now, test.born, start.Add(test.sent))
			if c.forward(now, test.born, start.Add(test.sent), start.Add(test.received), leap) {
				t.Error("it is ahead of itself")
			}
		})
	}
}

// Answers that follow each other, of a memory that began only just before the first.
func TestClockForwardAfterAnswers(t *testing.T) {
	const known, born = 100_000_000, 95_000_000
	for name, answers := range map[string][]struct {
		sent, received, now time.Duration // since those of the first
		want                bool
	}{
		"a slow one does not loosen what a quick one said": {{0, 0, 0, false},
			{0, 3 * time.Second, 3 * time.Second, false}, {3 * time.Second, 3 * time.Second, 4 * time.Second, true}},
		"set back, and forward again": {{0, 0, 0, false}, {time.Second, time.Second, -50 * time.Second, false},
			{2 * time.Second, 2 * time.Second, -20 * time.Second, true}},
	} {
		var c clock
		start := time.Now()
		for i, a := range answers {
			got := c.forward(known+a.now.Microseconds(), born, start.Add(a.sent), start.Add(a.received), leap)
			if got != a.want {
				t.Errorf("%s: answer %d: got %v", name, i+1, got)
			}
		}
	}
}

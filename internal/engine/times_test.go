package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// asleep is a moment as a machine sees it that slept for so long: by the monotonic clock it is as
// far away as before, by the wall clock so much nearer. Package time makes no such value, as
// nothing but sleep or setting the clock does.
func asleep(t *testing.T, at time.Time, slept time.Duration) time.Time {
	t.Helper()
	now, moved := time.Now(), at
	wall := (*uint64)(unsafe.Pointer(&moved)) // the first word: a bit, 33 bits of seconds, 30 of nanoseconds
	*wall -= uint64(slept/time.Second) << 30
	if moved.Sub(now) != at.Sub(now) || at.Round(0).Sub(moved.Round(0)) != slept {
		t.Fatal("package time keeps its moments in another way now")
	}
	return moved
}

func TestIsPastByEitherClock(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		end  time.Time
		past bool
	}{
		"ahead":                 {now.Add(time.Second), false},
		"now":                   {now, true},
		"over":                  {now.Add(-time.Second), true},
		"over by the wall":      {asleep(t, now.Add(10*time.Second), time.Minute), true},
		"over by the monotonic": {asleep(t, now.Add(-10*time.Second), -time.Minute), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isPast(test.end, now); got != test.past {
				t.Error(got)
			}
		})
	}
}

// Trap 39: timers stand still while a machine sleeps. Afterwards each method of the lease tells the
// truth, before anything else has noticed.
func TestLeaseAfterSleepIsLost(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, l *Lease){
		"Err": func(t *testing.T, l *Lease) {
			if err := l.Err(); !errors.Is(err, errOver) {
				t.Error(err)
			}
		},
		"Until": func(t *testing.T, l *Lease) {
			if until := l.Until(); until.After(time.Now()) {
				t.Errorf("trusted for another %v", time.Until(until))
			}
		},
		"Check": func(t *testing.T, l *Lease) {
			if err := l.Check(t.Context()); !errors.Is(err, errOver) {
				t.Error(err)
			}
		},
		"Release": func(t *testing.T, l *Lease) {
			if err := l.Release(); !errors.Is(err, errOver) {
				t.Error(err)
			}
		},
		"Detach": func(t *testing.T, l *Lease) {
			if _, err := l.Detach(); !errors.Is(err, errOver) {
				t.Error(err)
			}
		},
		"Bind": func(t *testing.T, l *Lease) {
			bound, unbind := l.Bind(t.Context())
			defer unbind()
			if cause := context.Cause(bound); bound.Err() == nil || !errors.Is(cause, errOver) {
				t.Errorf("ended by %v", cause)
			}
		},
		"entering": func(t *testing.T, l *Lease) {
			if inner, _ := l.tenure.hold.lock.enter(l.Carry(t.Context())); inner != nil {
				t.Error("entered")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := inMemory(t)
			l := lockMutex(t.Context(), t, e, "n")
			e.mu.Lock()
			l.tenure.hold.trustEnd = asleep(t, l.tenure.hold.trustEnd, time.Hour)
			e.mu.Unlock()
			ask(t, l)
		})
	}
}

// Trap 3: a holder whose process or machine stood still is told how late its own renewal was. A
// renewal that is a little late, or in time, is no reason.
func TestLossTellsHowLateTheRenewalWas(t *testing.T) {
	for name, test := range map[string]struct{ late, want time.Duration }{
		"an hour":  {time.Hour, time.Hour},
		"a moment": {time.Millisecond, 0},
		"in time":  {-time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var lost Lost
			e := inMemory(t)
			e.config.Cause = func(l Lost) error { lost = l; return errOver }
			l := lockMutex(t.Context(), t, e, "n")
			e.mu.Lock()
			l.tenure.hold.renewAt, l.tenure.hold.trustEnd = time.Now().Add(-test.late), time.Now()
			e.mu.Unlock()
			if l.Err() == nil || lost.Why != Expired || lost.Late.Round(time.Hour) != test.want {
				t.Errorf("lost %+v", lost)
			}
		})
	}
}

// The drawing docs/lease.svg tells these times, of a client whose Config says nothing.
func TestDrawingOfALeaseHasTheTimesOfTheEngine(t *testing.T) {
	const ttl = 15 * time.Second
	drawing, err := os.ReadFile(filepath.Join("..", "..", "docs", "lease.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for text, d := range map[string]time.Duration{
		"(TTL %,": ttl, "renewed every %)": renewalDelay(ttl, ttl), "margin: %<": margin(ttl), "claim: %<": claim(ttl),
		"within the claim (%)": claim(ttl), "first renewal, after %:": renewalDelay(claim(ttl), ttl),
	} {
		text = strings.Replace(text, "%", strings.NewReplacer("ms", " ms", "s", " s").Replace(d.String()), 1)
		if !strings.Contains(string(drawing), text) {
			t.Errorf("docs/lease.svg does not say %q", text)
		}
	}
}

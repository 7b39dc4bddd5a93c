//go:build unix

package hold

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// fakeLease is a lease as a guard sees it.
type fakeLease struct {
	until time.Time
	err   error
}

func (l *fakeLease) Done() <-chan struct{} { return nil }
func (l *fakeLease) Err() error            { return l.err }
func (l *fakeLease) Until() time.Time      { return l.until }

// newGuard is a guard of a command that ignores TERM. printed is what the guard wrote.
func newGuard(t *testing.T, l *fakeLease, ttl time.Duration) (g *guard, printed func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	fatal.If(t, err)
	defer r.Close()
	c, err := child.Start(child.Spec{Path: "/bin/sh", Args: []string{"sh", "-c", `trap "" TERM; echo in; exec sleep 60`},
		Env: os.Environ(), Files: []*os.File{nil, w, nil}})
	w.Close()
	fatal.If(t, err)
	t.Cleanup(func() {
		select {
		case <-c.Done(): // its process id may be that of another
		default:
			c.Kill()
			<-c.Done()
		}
	})
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "notices"))
	fatal.If(t, err)
	t.Cleanup(func() { file.Close() })
	notices := newNotices(file, logOptions{})
	return &guard{child: c, lease: l, notices: notices, name: `"job"`, onLost: onLostKill, ttl: ttl,
			early: ttl / 3}, func() string {
			t.Helper()
			close(notices.lines)
			<-notices.written
			text, err := os.ReadFile(file.Name())
			fatal.If(t, err)
			return string(text)
		}
}

func isAlive(g *guard) bool {
	select {
	case <-g.child.Done():
		return false
	default:
		return true
	}
}

func waitForEnd(t *testing.T, g *guard) {
	t.Helper()
	select {
	case <-g.child.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the command was not killed")
	}
}

// A guard acts at each moment before the end of trust, and wakes before the next moment.
func TestGuard(t *testing.T) {
	const ttl = 10 * time.Second
	end := time.Now().Add(time.Hour)
	g, printed := newGuard(t, &fakeLease{until: end}, ttl)
	for _, step := range []struct {
		left, next time.Duration
		asked      bool
	}{
		{ttl, checkEvery, false},
		{ttl/3 + 2*time.Millisecond, 2 * time.Millisecond, false},
		{ttl / 3, checkEvery, true},
		{time.Second, 900 * time.Millisecond, true},
		{101 * time.Millisecond, time.Millisecond, true},
	} {
		if next := g.check(end.Add(-step.left)); next != step.next || g.termSent != step.asked || g.lostReason != nil ||
			!isAlive(g) {
			t.Errorf("with %v left the next step is after %v, want %v; asked %v, want %v; ended with %v", step.left, next,
				step.next, g.termSent, step.asked, g.lostReason)
		}
	}
	g.check(end.Add(-100 * time.Millisecond))
	waitForEnd(t, g)
	if text := printed(); g.lostReason == nil || strings.Count(text, "TERM to the command") != 1 ||
		strings.Count(text, "KILL to the command") != 1 {
		t.Errorf("ended with %v, printed %q", g.lostReason, text)
	}
}

// If the lease is lost, the guard kills the command at once. If the guard only comes late, it gives
// the late renewal a moment.
func TestGuardAfterLateStep(t *testing.T) {
	const ttl = 10 * time.Second
	end := time.Now().Add(time.Hour)
	t.Run("lost", func(t *testing.T) {
		l := &fakeLease{until: end}
		g, printed := newGuard(t, l, ttl)
		g.check(end.Add(-ttl))
		l.err = errors.New("lost it")
		g.check(end.Add(-ttl / 2))
		waitForEnd(t, g)
		if text := printed(); text != "holdfast: lost it: KILL to the command\n" {
			t.Errorf("printed %q", text)
		}
	})
	t.Run("in time for a renewal", func(t *testing.T) {
		l := &fakeLease{until: end}
		g, printed := newGuard(t, l, ttl)
		g.due = end.Add(-ttl / 3)
		now := g.due.Add(ttl / 10)
		if next := g.check(now); next != end.Sub(now)/4 || g.termSent {
			t.Errorf("the next step is after %v; asked %v", next, g.termSent)
		}
		l.until = now.Add(ttl)
		if next := g.check(now); next != checkEvery || g.termSent || !isAlive(g) {
			t.Errorf("after the renewal the next step is after %v; asked %v", next, g.termSent)
		}
		if text := printed(); text != "" {
			t.Errorf("printed %q", text)
		}
	})
	t.Run("and there is none", func(t *testing.T) {
		g, printed := newGuard(t, &fakeLease{until: end}, ttl)
		g.due = end.Add(-ttl / 3)
		now := g.due.Add(ttl / 10)
		g.check(now)
		if g.check(now.Add(end.Sub(now) / 4)); !g.termSent || g.lostReason != nil {
			t.Errorf("asked %v, ended with %v", g.termSent, g.lostReason)
		}
		if text := printed(); !strings.Contains(text,
			"no renewal of \"job\" was confirmed in time, 1.75s are left: TERM to the command") {
			t.Errorf("printed %q", text)
		}
	})
}

// If an operator broke the lease, the command gets TERM, and KILL after the grace, or just before
// its trust would have ended. Without a known end of trust it is killed at once.
func TestGuardBrokenLease(t *testing.T) {
	const ttl = 10 * time.Second
	lost := &holdfast.LostError{Name: "job", Token: 5, Reason: holdfast.LossBroken, By: "op"}
	for _, tt := range []struct {
		name    string
		looked  bool          // the guard has looked at the lease before
		left    time.Duration // of trust when it is broken
		grace   time.Duration // before KILL; 0: there is no TERM
		printed string
	}{
		{"with much trust left", true, ttl, ttl / 3, "3.33s are left: TERM to the command"},
		{"with little trust left", true, time.Second, 900 * time.Millisecond, "900ms are left: TERM to the command"},
		{"with hardly any trust left", true, 90 * time.Millisecond, 0, ""},
		{"before the first look", false, ttl, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			end := time.Now().Add(time.Hour)
			l := &fakeLease{until: end}
			g, printed := newGuard(t, l, ttl)
			if tt.looked {
				g.check(end.Add(-ttl))
			}
			l.err, l.until = lost, end.Add(-tt.left)
			next := g.check(end.Add(-tt.left))
			if g.termSent != (tt.grace > 0) {
				t.Errorf("TERM was sent: %v", g.termSent)
			}
			if tt.grace > 0 {
				if next != min(tt.grace, checkEvery) {
					t.Errorf("the next step is after %v", next)
				}
				if g.check(end.Add(tt.grace - tt.left - time.Millisecond)); g.lostReason != nil || !isAlive(g) ||
					!g.mayRun(end.Add(tt.grace-tt.left-time.Millisecond)) {
					t.Errorf("a millisecond before KILL it ended with %v", g.lostReason)
				}
				g.check(end.Add(tt.grace - tt.left))
			}
			waitForEnd(t, g)
			text := printed()
			const kill = "it was broken by \"op\": KILL to the command\n"
			if !errors.Is(g.lostReason, holdfast.ErrLost) || !strings.Contains(text, tt.printed) ||
				!strings.HasSuffix(text, kill) || (tt.printed == "") == strings.Contains(text, "TERM") {
				t.Errorf("ended with %v, printed %q", g.lostReason, text)
			}
			if g.mayRun(end.Add(tt.grace - tt.left)) {
				t.Error("processes may go on")
			}
		})
	}
}

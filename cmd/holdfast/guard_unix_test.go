//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
)

// lent is a lease as a guard sees it.
type lent struct {
	until time.Time
	err   error
}

func (l *lent) Done() <-chan struct{} { return nil }
func (l *lent) Err() error            { return l.err }
func (l *lent) Until() time.Time      { return l.until }

// guarded is a guard of a command that ignores TERM, and the words of the guard so far.
func guarded(t *testing.T, l *lent, ttl time.Duration) (g *guard, said func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := child.Start(child.Spec{Path: "/bin/sh", Args: []string{"sh", "-c", `trap "" TERM; echo in; exec sleep 60`}, Env: os.Environ(), Files: []*os.File{nil, w, nil}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-c.Done(): // its number may be another's
		default:
			c.Kill()
			<-c.Done()
		}
	})
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	words, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { words.Close() })
	voice := newVoice(words)
	return &guard{child: c, lease: l, voice: voice, name: "job", onLost: onLostKill, ttl: ttl, early: ttl / 3}, func() string {
		t.Helper()
		close(voice.lines)
		<-voice.done
		text, err := os.ReadFile(words.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func alive(g *guard) bool {
	select {
	case <-g.child.Done():
		return false
	default:
		return true
	}
}

// killed waits for the end that a signal brings.
func killed(t *testing.T, g *guard) {
	t.Helper()
	select {
	case <-g.child.Done():
	case <-time.After(patient):
		t.Fatal("the command was not killed")
	}
}

// Trap 34: what a guard does at each moment before the end of the trust, and that it comes again before the next.
func TestGuard(t *testing.T) {
	const ttl = 10 * time.Second
	end := time.Now().Add(time.Hour)
	g, said := guarded(t, &lent{until: end}, ttl)
	for _, step := range []struct {
		left, next time.Duration
		asked      bool
	}{
		{ttl, look, false},
		{ttl/3 + 2*time.Millisecond, 2 * time.Millisecond, false},
		{ttl / 3, look, true},
		{time.Second, 900 * time.Millisecond, true},
		{101 * time.Millisecond, time.Millisecond, true},
	} {
		if next := g.do(end.Add(-step.left)); next != step.next || g.told != step.asked || g.ended != nil || !alive(g) {
			t.Errorf("with %v left it comes again after %v, want %v; asked %v, want %v; ended with %v", step.left, next, step.next, g.told, step.asked, g.ended)
		}
	}
	g.do(end.Add(-100 * time.Millisecond))
	killed(t, g)
	if text := said(); g.ended == nil || strings.Count(text, "TERM to the command") != 1 || strings.Count(text, "KILL to the command") != 1 {
		t.Errorf("ended with %v, said %q", g.ended, text)
	}
}

// A lease that is lost, by an answer or because this process stood still, costs the command its life at once; standing still for
// less gives the renewal that is late a moment.
func TestGuardComesLate(t *testing.T) {
	const ttl = 10 * time.Second
	end := time.Now().Add(time.Hour)
	t.Run("lost", func(t *testing.T) {
		l := &lent{until: end}
		g, said := guarded(t, l, ttl)
		g.do(end.Add(-ttl))
		l.err = errors.New("lost it")
		g.do(end.Add(-ttl / 2))
		killed(t, g)
		if text := said(); text != "holdfast: lost it: KILL to the command\n" {
			t.Errorf("said %q", text)
		}
	})
	t.Run("in time for a renewal", func(t *testing.T) {
		l := &lent{until: end}
		g, said := guarded(t, l, ttl)
		g.due = end.Add(-ttl / 3)
		now := g.due.Add(ttl / 10)
		if next := g.do(now); next != end.Sub(now)/4 || g.told {
			t.Errorf("it comes again after %v; asked %v", next, g.told)
		}
		l.until = now.Add(ttl)
		if next := g.do(now); next != look || g.told || !alive(g) {
			t.Errorf("after the renewal it comes again after %v; asked %v", next, g.told)
		}
		if text := said(); text != "" {
			t.Errorf("said %q", text)
		}
	})
	t.Run("and there is none", func(t *testing.T) {
		g, said := guarded(t, &lent{until: end}, ttl)
		g.due = end.Add(-ttl / 3)
		now := g.due.Add(ttl / 10)
		g.do(now)
		if g.do(now.Add(end.Sub(now) / 4)); !g.told || g.ended != nil {
			t.Errorf("asked %v, ended with %v", g.told, g.ended)
		}
		if text := said(); !strings.Contains(text, "no renewal of \"job\" was confirmed in time, 1.75s are left: TERM to the command") {
			t.Errorf("said %q", text)
		}
	})
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A led command holds a file lock of the system for as long as any process of it lives, so it sees
// a second one beside it.
const led = `exec 9>>"$0.lock"; flock -n 9 || { echo OVERLAP >>"$0"; exit 1; }; echo "in $1 $HOLDFAST_TOKEN" >>"$0"; exec sleep 600`

// Three processes campaign. The leader is killed with -9, or the server stands still for longer
// than the TTL, or dies and comes back. Each time the command runs again, and never twice.
func TestElectWithKills(t *testing.T) {
	long(t)
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock on the PATH")
	}
	rounds := 1
	if measured() {
		rounds = 5
	}
	const ttl = 3 * time.Second
	s, err := redisserver.Run(t.Context(), "--appendonly", "yes", "--appendfsync", "always") // it forgets nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	log := filepath.Join(t.TempDir(), "log")
	candidates := map[string]*exec.Cmd{}
	said := func(name string) string {
		text, _ := os.ReadFile(log + "." + name)
		return string(text)
	}
	start := func(name string) {
		cmd, _ := program(t, s, "elect", "--log", "json", "--ttl", ttl.String(), "--label", name, "job", "--", "sh",
			"-c", led, log, name)
		stderr, err := os.Create(log + "." + name)
		if err != nil {
			t.Fatal(err)
		}
		defer stderr.Close()
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		candidates[name] = cmd
		// It ends if it finds no server at its start.
		until(t, name+" campaigns", func() bool { return strings.Contains(said(name), `"event":`) })
	}
	end := func(name string) {
		_ = candidates[name].Process.Kill()
		_ = candidates[name].Wait()
	}
	t.Cleanup(func() {
		for name := range candidates {
			end(name)
			if t.Failed() {
				t.Logf("%s: %s", name, said(name))
			}
		}
	})
	terms := func() []string {
		text, _ := os.ReadFile(log)
		return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	}
	// next waits for another term, and returns its leader.
	next := func(why string, before int, began time.Time) string {
		until(t, "the command runs again after "+why, func() bool { return len(terms()) > before })
		t.Logf("%s: the command ran again after %v", why, time.Since(began).Round(time.Millisecond))
		term := strings.Fields(terms()[before])
		if len(term) != 3 {
			t.Fatalf("after %s: %q", why, terms())
		}
		return term[1]
	}
	for _, name := range []string{"a", "b", "c"} {
		start(name)
	}
	leader := next("the start", 0, time.Now())
	for range rounds {
		before, began := len(terms()), time.Now()
		end(leader)
		former := leader
		leader = next("kill -9", before, began)
		if took := time.Since(began); took > ttl+2*time.Second && measured() {
			t.Errorf("the next one led after %v", took)
		}
		if leader == former {
			t.Errorf("%s was killed, and leads", former)
		}
		start(former)

		before, began = len(terms()), time.Now()
		held := expiry(t, s, ttl)
		s.Stop()
		until(t, "the TTL is over", func() bool { return time.Now().After(held.Add(500 * time.Millisecond)) })
		s.Continue()
		next("a server that stood still", before, began)

		before, began = len(terms()), time.Now()
		held = expiry(t, s, ttl)
		s.Kill()
		until(t, "the TTL is over", func() bool { return time.Now().After(held.Add(500 * time.Millisecond)) })
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		leader = next("a server that died", before, began)
	}
	tokens := map[string]bool{}
	for _, term := range terms() {
		fields := strings.Fields(term)
		if len(fields) != 3 || tokens[fields[2]] {
			t.Errorf("%q in\n%s", term, strings.Join(terms(), "\n"))
			break
		}
		tokens[fields[2]] = true
	}
}

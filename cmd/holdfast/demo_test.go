package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/redis/go-redis/v9"
)

// small is a demo for tests: the same, only shorter. Its leases outlast a machine that stands still, which also may make a
// take-over late; by how much, is looked at in make proof, where nothing else runs.
func small(*testing.T) (*Demo, *bytes.Buffer) {
	var out bytes.Buffer
	d := &Demo{Rounds: 3, Workers: 4, TTL: 4 * time.Second, Pace: 20 * time.Millisecond, Slack: 8 * time.Second, Out: &out, Err: os.Stderr}
	if measured() {
		d.Slack = 0
	}
	return d, &out
}

// startReal starts a server program, or skips the test where there is none.
func startReal(t *testing.T) *server.Server {
	t.Helper()
	path, ok := server.Find()
	if !ok {
		t.Skip("no redis-server on the PATH")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), path, []string{self, keeperName})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestDemo(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *Demo){
		"embedded": func(_ *testing.T, d *Demo) { d.Embedded = true },
		"server of its own": func(t *testing.T, _ *Demo) {
			if _, ok := server.Find(); !ok {
				t.Skip("no redis-server on the PATH")
			}
		},
		"server of the user": func(t *testing.T, d *Demo) { d.Redis = startReal(t).URL },
		"one round, which is that with the kill": func(_ *testing.T, d *Demo) {
			d.Embedded, d.Rounds, d.Workers = true, 1, 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, out := small(t)
			prepare(t, d)
			if err := d.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{
				"is killed with -9", "takes over", "after the kill", "double draws    0\n", "\nkill -9 ", "Every round had exactly one draw.",
				"is stopped before it draws", "draws late: REFUSED by the ledger, token", "its late draw was refused; it saw",
				"takes its time, and renews", "lease is lost: holdfast: lost \"lottery\"", "the max hold is over",
			} {
				if d.Rounds == 1 && !strings.Contains(want, "kill") && !strings.Contains(want, "draw.") {
					continue // there is one round, and in that one a kill
				}
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// The demo must be able to fail: what it counts is there as soon as the lock is not.
func TestDemoWithoutLock(t *testing.T) {
	d, out := small(t)
	d.Embedded, d.Without, d.Pace = true, true, time.Second // in which the others look as well
	err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "double draws were tried") {
		t.Fatalf("error %v, want double draws\n%s", err, out)
	}
	if exitCode(err) != 1 || !strings.Contains(out.String(), "REFUSED") {
		t.Errorf("exit code %d and\n%s", exitCode(err), out)
	}
}

func TestDemoLeavesNoKeys(t *testing.T) {
	s := startReal(t)
	rdb := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.URL, "redis://")})
	defer rdb.Close()
	if err := rdb.Set(t.Context(), "holdfast-demo", "of the user", 0).Err(); err != nil {
		t.Fatal(err)
	}
	d, out := small(t)
	d.Redis, d.Rounds = s.URL, 1
	if err := d.Run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 {
		t.Errorf("keys %q, %v; want only the user's", keys, err)
	}
}

func TestDemoValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Demo)
		want   []string // in the error; none: no error
	}{
		"as it is":       {func(*Demo) {}, nil},
		"the least":      {func(d *Demo) { d.Rounds, d.Workers, d.TTL = 1, 2, minTTL }, nil},
		"the most":       {func(d *Demo) { d.Rounds, d.Workers, d.TTL = maxRounds, maxWorkers, maxTTL }, nil},
		"no rounds":      {func(d *Demo) { d.Rounds = 0 }, []string{"--rounds 0", "1 to 50"}},
		"alone":          {func(d *Demo) { d.Workers = 1 }, []string{"--workers 1", "2 to 32"}},
		"short":          {func(d *Demo) { d.TTL = time.Millisecond }, []string{"--ttl 1ms", "500ms to 5s"}},
		"long":           {func(d *Demo) { d.TTL = time.Hour }, []string{"--ttl 1h0m0s"}},
		"everything bad": {func(d *Demo) { d.Rounds, d.Workers, d.TTL = -1, -2, -3 }, []string{"--rounds -1", "--workers -2", "--ttl -3ns"}},
		"two servers":    {func(d *Demo) { d.Redis, d.Embedded = "redis://h", true }, []string{"--redis redis://h and --embedded"}},
		"not a URL":      {func(d *Demo) { d.Redis = "localhost" }, []string{"--redis: it is not a URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Demo{Rounds: 10, Workers: 8, TTL: 2 * time.Second}
			test.change(d)
			err := d.Validate()
			if (err == nil) != (test.want == nil) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if err != nil && exitCode(err) != 64 {
				t.Errorf("exit code %d", exitCode(err))
			}
		})
	}
}

func TestDemoNoServer(t *testing.T) {
	d, _ := small(t)
	d.Redis = "redis://:secret@127.0.0.1:1"
	err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "redis://***@127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// trigger calls do once, when something has been written that holds text.
type trigger struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if w.do != nil && bytes.Contains(p, []byte(w.text)) {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(p)
}

func TestDemoInterrupted(t *testing.T) {
	for _, text := range []string{"round 1", "holds the lock", "is killed"} {
		t.Run(text, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			d, _ := small(t)
			d.Embedded, d.Rounds = true, 1 // the one with the kill
			d.Out = &trigger{text: text, do: func() { cancel(errInterrupted) }}
			err := d.Run(ctx)
			if !errors.Is(err, errInterrupted) || exitCode(err) != 130 {
				t.Errorf("error %v, exit code %d", err, exitCode(err))
			}
		})
	}
}

// A server that dies must not keep the demo until its limit.
func TestDemoServerDies(t *testing.T) {
	s := startReal(t)
	d, _ := small(t)
	d.Redis, d.Pace, d.Slack = s.URL, time.Second, 0 // the second one would have its turn after that
	out := &trigger{text: "holds the lock", do: func() { _ = s.Stop() }}
	d.Out = out
	err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "could not go on") && !strings.Contains(err.Error(), "nobody drew") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(out.String(), "PROBLEM") {
		t.Errorf("no problem is told:\n%s", out.String())
	}
}

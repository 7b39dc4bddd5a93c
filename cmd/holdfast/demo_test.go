package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/redis/go-redis/v9"
)

// small is a demo that ends soon. Its leases outlast a machine that stands still, and take-overs
// may be late: only make proof judges how long they take.
func small() (*Demo, *bytes.Buffer) {
	var out bytes.Buffer
	d := &Demo{Config: demo.Config{Rounds: 3, Workers: 4, TTL: 4 * time.Second, Draw: 20 * time.Millisecond, Slack: 8 * time.Second}, Out: &out, Err: os.Stderr}
	if measured() {
		d.Slack = 0
	}
	return d, &out
}

// startReal starts a server program, or skips the test if there is none.
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
		"embedded":           func(_ *testing.T, d *Demo) { d.Embedded = true },
		"server of its own":  func(*testing.T, *Demo) {}, // embedded without a redis-server
		"server of the user": func(t *testing.T, d *Demo) { d.Redis = startReal(t).URL },
		"one round":          func(_ *testing.T, d *Demo) { d.Embedded, d.Rounds, d.Workers = true, 1, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, out := small()
			prepare(t, d)
			if err := d.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := []string{"is killed with -9", "takes over", "after the kill", "double draws  0\n", "\nkill -9 ", "Every round had exactly one draw."}
			if d.Rounds > 1 {
				want = append(want, "is stopped before it draws", "draws late: REFUSED by the ledger, token #", "; late draw refused; loss seen",
					"takes its time, and renews", "lease is lost: no renewal was confirmed", "lease is lost: the max hold is over")
			}
			for _, want := range want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(line) - 1; n > 85 || n > 80 && !strings.Contains(line, "inside this program") {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// The demo can fail: without the lock there are double draws.
func TestDemoWithoutLock(t *testing.T) {
	d, out := small()
	d.Embedded, d.NoLock, d.Draw = true, true, time.Second // in which the others look too
	err := d.Run(t.Context())
	if exitCode(err) != 1 || !strings.Contains(err.Error(), "double draws were tried") ||
		!strings.Contains(out.String(), "REFUSED") || !strings.Contains(out.String(), "believes it holds") {
		t.Errorf("error %v, want double draws, and\n%s", err, out)
	}
}

func TestDemoLeavesNoKeys(t *testing.T) {
	s := startReal(t)
	rdb := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.URL, "redis://")})
	defer rdb.Close()
	if err := rdb.Set(t.Context(), "holdfast-demo", "of the user", 0).Err(); err != nil {
		t.Fatal(err)
	}
	d, out := small()
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
			d := &Demo{Config: demo.Config{Rounds: 10, Workers: 8, TTL: 2 * time.Second}}
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
	d, _ := small()
	d.Redis = "redis://:secret@127.0.0.1:1"
	err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "redis://***@127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// A trigger calls do once, when text is written.
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
			d, _ := small()
			d.Embedded, d.Rounds = true, 1 // the one with the kill
			d.Out = &trigger{text: text, do: func() { cancel(errInterrupted) }}
			err := d.Run(ctx)
			if !errors.Is(err, errInterrupted) || exitCode(err) != 130 {
				t.Errorf("error %v, exit code %d", err, exitCode(err))
			}
		})
	}
}

// A server that dies does not keep the demo until its limit.
func TestDemoServerDies(t *testing.T) {
	s := startReal(t)
	d, _ := small()
	d.Redis, d.Draw, d.Slack = s.URL, time.Second, 0
	out := &trigger{text: "holds the lock", do: func() { _ = s.Stop() }}
	d.Out = out
	err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "could not go on") && !strings.Contains(err.Error(), "nobody drew") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(out.String(), "PROBLEM") {
		t.Errorf("no problem in\n%s", out.String())
	}
}

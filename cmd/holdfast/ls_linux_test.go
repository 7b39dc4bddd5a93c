package main

import (
	"bytes"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Among 1,000,000 other keys, ls of 100,000 locks takes no more memory than ls of 1,000, in every
// form, and no command of it holds the server up.
func TestLsStreams(t *testing.T) {
	if !measured() {
		t.Skip("100,000 locks and a million keys: only with HOLDFAST_PROOF=1")
	}
	s := redisserver.Start(t)
	client := newClient(t, "redis://"+s.Addr(), holdfast.Config{MaxTTL: time.Hour, TTL: time.Hour})
	if _, err := client.Mutex("a").TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	populate := func(from, to int) {
		t.Helper()
		for ; from < to; from += 1000 { // the connection of a test waits for 5 s at most
			const copies = `for i = ARGV[1], ARGV[1] + 999 do redis.call("COPY", "holdfast:{a}", "holdfast:{order:" .. i .. "}") end`
			if _, err := s.Do("EVAL", copies, 0, from); err != nil {
				t.Fatal(err)
			}
		}
	}
	ls := func(args ...string) (lines int, memory int64) {
		t.Helper()
		counted := &lineCounter{}
		cmd, _ := program(t, s, append([]string{"ls"}, args...)...)
		cmd.Stdout = counted
		began := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB
		t.Logf("ls %s: %d lines in %v, %d MiB", strings.Join(args, " "), counted.lines,
			time.Since(began).Round(time.Millisecond), memory>>10)
		return counted.lines, memory
	}
	populate(0, 1000)
	_, few := ls("-o", "jsonl")
	populate(1000, 100_000)
	for range 10 {
		if _, err := s.Do("EVAL", `for i = 1, 100000 do redis.call("SET", "other:" .. ARGV[1] .. ":" .. i, "x") end`, 0,
			time.Now().UnixNano()); err != nil {
			t.Fatal(err)
		}
	}
	const more = 24 << 10 // KiB: the last names, the first rows, and what the collector leaves
	for _, test := range []struct {
		args  []string
		lines int
	}{
		{[]string{"-o", "jsonl"}, 100_001}, {[]string{"-o", "json"}, 100_003}, {nil, 100_002},
		{[]string{"--sort", "age"}, 1001},
	} {
		if _, err := s.Do("CONFIG", "RESETSTAT"); err != nil {
			t.Fatal(err)
		}
		lines, memory := ls(test.args...)
		if lines != test.lines || memory > few+more {
			t.Errorf("ls %v: %d lines, want %d; %d KiB, and %d for 1,000 locks", test.args, lines, test.lines, memory, few)
		}
		for _, command := range []string{"scan", "evalsha"} {
			if took := nearlyAll(t, s, command); took >= 10*time.Millisecond {
				t.Errorf("ls %v: of 100 commands %s one takes longer than %v", test.args, command, took)
			}
		}
	}
}

// nearlyAll is the time in which a server answered 99 of 100 commands of a kind. The longest of
// all says only for how long the machine stood still.
func nearlyAll(t *testing.T, s *redisserver.Server, command string) time.Duration {
	t.Helper()
	text, err := s.Do("INFO", "latencystats") // since Redis 7
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`usec_` + command + `:.*p99=([0-9.]+)`).FindStringSubmatch(text.(string))
	if found == nil {
		t.Logf("the server tells no latency of %s", command)
		return 0
	}
	took, err := time.ParseDuration(found[1] + "us")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("99 of 100 commands %s took at most %v", command, took)
	return took
}

// A lineCounter counts the lines that are written.
type lineCounter struct{ lines int }

// Write implements io.Writer.
func (c *lineCounter) Write(text []byte) (int, error) {
	c.lines += bytes.Count(text, []byte("\n"))
	return len(text), nil
}

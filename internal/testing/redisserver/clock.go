package redisserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Clock decides the time that the servers show which it starts, instead of the machine's clock:
// any time from 1970 on. It is made of libfaketime, which is loaded into the servers. It changes
// what the clock shows, and leaves the servers' timers alone.
//
// A Clock is for one goroutine at a time.
type Clock struct {
	tb    testing.TB
	file  string // says what is shown; the servers read it at each look at the clock
	env   []string
	ahead time.Duration // of the machine's clock
}

// NewClock makes a clock that shows the machine's time. It skips the test if libfaketime is not
// installed.
func NewClock(tb testing.TB) *Clock {
	tb.Helper()
	fake := find("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")
	libc := find("/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6")
	if fake == "" || libc == "" {
		tb.Skip("no clocks to set: libfaketime is not installed")
	}
	c := &Clock{tb: tb, file: filepath.Join(tb.TempDir(), "clock")}
	// Without libc behind it, libfaketime hangs Debian's redis-server, which brings an allocator of
	// its own.
	c.env = []string{"LD_PRELOAD=" + fake + " " + libc, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "TZ=UTC"}
	c.Ahead(0)
	return c
}

func find(patterns ...string) string {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// Start is the function Start, for a server with this clock. Restart keeps the clock. Start skips
// the test if the server does not show what the clock says.
func (c *Clock) Start(tb testing.TB, opts ...string) *Server {
	tb.Helper()
	s := begin(tb, "", c.env, opts)
	shown, err := s.Time()
	if err != nil {
		tb.Fatal(err)
	}
	if off := time.Until(shown) - c.ahead; off.Abs() > time.Minute {
		tb.Skipf("libfaketime does not reach the server: its clock is off by %v", off)
	}
	return s
}

// Ahead makes the servers show d more than the machine's clock, or less if d is negative. The file
// is renamed into place: a server may read it at any moment.
func (c *Clock) Ahead(d time.Duration) {
	c.ahead = d
	err := os.WriteFile(c.file+".new", fmt.Appendf(nil, "%+.6f\n", d.Seconds()), 0o600)
	if err := errors.Join(err, os.Rename(c.file+".new", c.file)); err != nil {
		c.tb.Error(err)
	}
}

// Time returns what the server's clock shows.
func (s *Server) Time() (time.Time, error) {
	answer, err := s.Do("TIME")
	if err != nil {
		return time.Time{}, err
	}
	var seconds, micros int64
	_, err = fmt.Sscanf(fmt.Sprint(answer), "[%d %d]", &seconds, &micros)
	return time.Unix(seconds, micros*1000), err
}

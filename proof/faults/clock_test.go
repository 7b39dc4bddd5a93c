package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// Trap 40: the server's clock is an hour off, and steps by an hour, to and fro, under those who lock. A step forward ends all holds, as
// nobody can tell it from time that passed: then another may be in before the holder's process is told, which goes on with smaller
// tokens meanwhile; both are counted. Tokens of new holds grow through every step, so the storage loses no update; nobody is stuck.
func TestServerClock(t *testing.T) {
	long(t)
	set := fakeClock(t)
	set(time.Hour)
	srv := redisserver.Start(t)
	if off := clockOf(t, srv); off != time.Hour {
		t.Skipf("libfaketime does not reach the server: its clock is off by %v", off)
	}
	l := &load{t: t, names: 4}
	steps := []time.Duration{0, -time.Hour, time.Hour, 0, time.Hour, -time.Hour}
	n := 0
	stop := every(200*time.Millisecond, func() { set(steps[n%len(steps)]); n++ })
	l.run(crowd(t, srv.Addr(), &holdfast.Config{TTL: time.Second}), 4, 0, time.Duration(times(t))*4*time.Second)
	stepped := stop()
	t.Logf("%d holds began while another was trusted, %d with a smaller token than one before", l.overlaps, l.smaller)
	if l.smaller > l.holds/10 {
		t.Error("tokens follow the clock")
	}
	l.overlaps, l.smaller = 0, 0
	l.judge(fmt.Sprintf("the server's clock was an hour off and stepped %d times", stepped))
}

// fakeClock makes the servers that start from now on take their time from a file. libfaketime hangs Debian's redis-server, which
// brings an allocator of its own, unless libc is loaded after it (trap 50).
func fakeClock(t *testing.T) (set func(time.Duration)) {
	t.Helper()
	fake, libc, err := libraries()
	if err != nil {
		t.Skip(err)
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	clock := filepath.Join(dir, "clock")
	script := fmt.Sprintf("#!/bin/sh\nexport FAKETIME_TIMESTAMP_FILE=%q FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\nLD_PRELOAD=%q exec %q \"$@\"\n",
		clock, fake+" "+libc, program)
	wrapper := filepath.Join(dir, "redis-server")
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_SERVER", wrapper)
	return func(d time.Duration) {
		// Renamed into place: the server reads it at every look at the clock.
		err := os.WriteFile(clock+".new", fmt.Appendf(nil, "%+ds\n", int(d.Seconds())), 0o600)
		if err := errors.Join(err, os.Rename(clock+".new", clock)); err != nil {
			t.Error(err)
		}
	}
}

// clockOf is how far the server's clock is ahead, to the minute.
func clockOf(t *testing.T, srv *redisserver.Server) time.Duration {
	t.Helper()
	var seconds int64
	if _, err := fmt.Sscan(do(t, srv, "TIME").([]any)[0].(string), &seconds); err != nil {
		t.Fatal(err)
	}
	return time.Until(time.Unix(seconds, 0)).Round(time.Minute)
}

func libraries() (fake, libc string, err error) {
	find := func(patterns ...string) string {
		for _, pattern := range patterns {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	fake = find("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")
	libc = find("/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6")
	if fake == "" || libc == "" {
		return "", "", errors.New("no clocks to set: libfaketime is not installed")
	}
	return fake, libc, nil
}

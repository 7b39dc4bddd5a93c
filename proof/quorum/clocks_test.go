package quorum

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// A faked master takes its time from a file. libfaketime hangs Debian's redis-server, which brings an allocator of its own,
// unless libc is loaded after it (trap 50).
func (r *rig) faked(offset time.Duration) (set func(time.Duration)) {
	r.Helper()
	libraries, err := libraries()
	if err != nil {
		r.Skipf("no clocks to set: %v", err)
	}
	dir := r.TempDir()
	clock := filepath.Join(dir, "clock")
	set = func(d time.Duration) {
		// Renamed into place: the server reads it at every look at the clock.
		if err := os.WriteFile(clock+".new", fmt.Appendf(nil, "%+ds\n", int(d.Seconds())), 0o600); err != nil {
			r.Fatal(err)
		}
		if err := os.Rename(clock+".new", clock); err != nil {
			r.Fatal(err)
		}
	}
	set(offset)
	program, err := exec.LookPath("redis-server")
	if err != nil {
		r.Skip(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexport FAKETIME_TIMESTAMP_FILE=%q FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\nLD_PRELOAD=%q exec %q \"$@\"\n",
		clock, libraries, program)
	wrapper := filepath.Join(dir, "redis-server")
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		r.Fatal(err)
	}
	r.Setenv("REDIS_SERVER", wrapper)
	r.masters = append(r.masters, redisserver.Start(r))
	return set
}

// reaches skips the test where setting the clock of a master does nothing.
func (r *rig) reaches(i int, set func(time.Duration)) {
	r.Helper()
	set(time.Hour)
	defer set(0)
	answer, err := r.masters[i].Do("TIME")
	if err != nil {
		r.Fatal(err)
	}
	var seconds int64
	_, _ = fmt.Sscan(answer.([]any)[0].(string), &seconds)
	if off := time.Until(time.Unix(seconds, 0)).Round(time.Minute); off != time.Hour {
		r.Skipf("libfaketime does not reach the server: its clock is off by %v", off)
	}
}

func libraries() (string, error) {
	find := func(patterns ...string) string {
		for _, pattern := range patterns {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	fake := find("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")
	libc := find("/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6")
	if fake == "" || libc == "" {
		return "", errors.New("libfaketime is not installed")
	}
	return fake + " " + libc, nil
}

// TestClocks: the clocks of two masters are an hour ahead and an hour behind, and then step while locks are held.
func TestClocks(t *testing.T) {
	long(t)
	r := &rig{T: t, dir: t.TempDir()}
	ahead, behind := r.faked(0), r.faked(0)
	t.Setenv("REDIS_SERVER", "")
	for range 3 {
		r.masters = append(r.masters, redisserver.Start(t))
	}
	r.reaches(0, ahead)
	r.reaches(1, behind)
	ahead(time.Hour)
	behind(-time.Hour)
	r.found()
	holds := r.under([]*lag{nil, nil, nil, nil}, func() {
		r.pass(3 * time.Second)
		for range 3 {
			ahead(0) // a step back
			r.pass(700 * time.Millisecond)
			behind(time.Hour) // two hours forward: what it kept is over
			r.pass(700 * time.Millisecond)
			ahead(time.Hour)
			r.pass(700 * time.Millisecond)
			behind(-time.Hour)
			r.pass(700 * time.Millisecond)
		}
	})
	t.Logf("%d holds\n%v", holds, r.check())
	if holds < 100 {
		t.Errorf("%d holds: too few to show anything", holds)
	}
}

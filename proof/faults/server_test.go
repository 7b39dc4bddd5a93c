package faults

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 44: the server is killed and started again, with what it wrote down. Without an AOF it
// forgets who holds: then a holder is told at its next renewal, and another may be in before;
// tokens of new holds grow all the same.
func TestServerKilled(t *testing.T) {
	harness.Long(t)
	for name, opts := range map[string][]string{
		"no AOF":   nil,
		"everysec": {"--appendonly", "yes", "--appendfsync", "everysec", "--dir", memoryDir(t)},
		"always":   {"--appendonly", "yes", "--appendfsync", "always"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, opts...)
			var restarts atomic.Int64
			l := &harness.Load{T: t, Names: harness.Names(4), Retains: true,
				Enough: func() bool { return restarts.Load() >= 2 }}
			clients := newClients(t, srv, 2*time.Second)
			kills := repeat(500*time.Millisecond, func() { _ = srv.Restart(); restarts.Add(1) })
			l.Run(clients, 4, 0, time.Duration(times(t))*3*time.Second)
			n := kills()
			if opts == nil {
				t.Logf("without an AOF, %d holds began while another was trusted, %d with a smaller token than one "+
					"before", l.Overlaps, l.Smaller)
				l.Overlaps, l.Smaller = 0, 0
			}
			l.Report(fmt.Sprintf("kill -9 and restart %d times, %s", n, name))
			if n < 2 {
				t.Errorf("%d restarts show nothing", n)
			}
		})
	}
}

// memoryDir returns a directory in memory, where the system has one: while a disk is slow to sync,
// a server that syncs every second holds back what it writes, and loses that when it is killed.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Trap 40: the server's clock is an hour off, and steps by an hour, to and fro, under those who
// lock. A step forward ends all holds, as nobody can tell it from time that passed: then another
// may be in before the holder's process is told, which goes on with smaller tokens meanwhile; both
// are counted. Tokens of new holds grow through every step, so the storage loses no update; nobody
// is stuck.
func TestServerClock(t *testing.T) {
	harness.Long(t)
	clock := redisserver.NewClock(t)
	clock.Ahead(time.Hour)
	srv := clock.Start(t)
	l := &harness.Load{T: t, Names: harness.Names(4)}
	steps := []time.Duration{0, -time.Hour, time.Hour, 0, time.Hour, -time.Hour}
	n := 0
	stop := repeat(200*time.Millisecond, func() { clock.Ahead(steps[n%len(steps)]); n++ })
	l.Run(newClients(t, srv, time.Second), 4, 0, time.Duration(times(t))*4*time.Second)
	stepped := stop()
	t.Logf("%d holds began while another was trusted, %d with a smaller token than one before", l.Overlaps, l.Smaller)
	if l.Smaller > l.Holds/10 {
		t.Error("tokens follow the clock")
	}
	l.Overlaps, l.Smaller = 0, 0
	l.Report(fmt.Sprintf("the server's clock was an hour off and stepped %d times", stepped))
}

package faults

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
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

// Trap 35: acquires that reach a server after their sender gave up, because it stood still, would
// hold the lock for a TTL that nobody renews. They carry a moment after which they do nothing. A
// Sentinel or a cluster would elect another master if it lasted a second.
func stopServers(t *testing.T, b *harness.Deployment) {
	const batch, ttl = 100, time.Minute
	c := b.Client(t, holdfast.Config{TTL: ttl})
	failsOver := b.Topology != harness.Single && b.Topology != harness.Quorum
	standstill := time.Second // longer than a request may take effect
	if failsOver {
		standstill = 200 * time.Millisecond // too short for an election
	}
	var acquired int64
	orphans, applied := 0, 0
	for i := range times(t) {
		warmUp(t, c, batch)
		b.IsClean(t)
		before := countWrites(b)
		b.Each((*redisserver.Server).Stop)
		acquired += askAndGiveUp(t, c, fmt.Sprint("zombie:", i), batch)
		pause(standstill)
		b.Each((*redisserver.Server).Continue)
		pause(time.Second)
		// A hold that takes effect after all is given back in the background; nothing else ends it
		// for a minute.
		orphans += len(b.LeftAtLast(t))
		applied += countWrites(b) - before
	}
	t.Logf("%d asked of servers that stood still, and given up: %d were given a lock, %d took effect all the same, "+
		"%d orphans", times(t)*batch, acquired, applied, orphans)
	if acquired > 0 {
		t.Errorf("%d locks were acquired from servers that stood still", acquired)
	}
	if orphans > 0 {
		t.Errorf("%d holds stayed after their callers gave up", orphans)
	}
	if applied > 0 && !failsOver {
		t.Errorf("%d late requests took effect", applied)
	}
}

// warmUp uses so many locks at once, so that every connection is there, and the time of every
// server is known.
func warmUp(t *testing.T, c *holdfast.Client, batch int) {
	var all sync.WaitGroup
	for i := range batch {
		all.Go(func() {
			if err := harness.Given(c.Mutex(fmt.Sprint("warm", i)).Lock(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// askAndGiveUp asks for so many locks at once, gives up, and returns how many it got.
func askAndGiveUp(t *testing.T, c *holdfast.Client, prefix string, batch int) int64 {
	var all sync.WaitGroup
	var acquired atomic.Int64
	for i := range batch {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
			defer cancel()
			m := c.Mutex(fmt.Sprintf("%s:%d", prefix, i))
			ask := m.Lock
			if i%2 == 0 {
				ask = m.TryLock
			}
			if _, err := ask(ctx); err == nil {
				acquired.Add(1)
			}
		})
	}
	all.Wait()
	return acquired.Load()
}

// countWrites counts the command by which the scripts write a hold.
func countWrites(b *harness.Deployment) (n int) {
	command := "set"
	if b.Topology == harness.Quorum {
		command = "zadd" // hset writes facts as well
	}
	for _, srv := range b.Masters {
		n += srv.CommandStats()[command]
	}
	return n
}

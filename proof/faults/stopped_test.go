package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

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

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
// Sentinel or a cluster would elect another if it lasted a second.
func stopServers(t *testing.T, b *harness.Deployment) {
	const batch, ttl = 100, time.Minute
	c := b.Client(t, holdfast.Config{TTL: ttl})
	patient := b.Topology == harness.Single || b.Topology == harness.Quorum // nobody elects another
	asked, orphans, applied := 0, 0, 0
	var got atomic.Int64
	for i := range times(t) {
		var all sync.WaitGroup
		for j := range batch { // every connection, and the time of every server, is known
			all.Go(func() {
				if err := harness.Given(c.Mutex(fmt.Sprint("warm", j)).Lock(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		b.IsClean(t)
		before := countWrites(b)
		b.Each((*redisserver.Server).Stop)
		for j := range batch {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				defer cancel()
				m := c.Mutex(fmt.Sprintf("zombie:%d:%d", i, j))
				ask := m.Lock
				if j%2 == 0 {
					ask = m.TryLock
				}
				if _, err := ask(ctx); err == nil {
					got.Add(1)
				}
			})
		}
		all.Wait()
		if pause(200 * time.Millisecond); patient {
			pause(800 * time.Millisecond) // longer than a request may take effect
		}
		b.Each((*redisserver.Server).Continue)
		asked += batch
		pause(time.Second)
		// A hold that takes effect after all is given back in the background; nothing else ends it
		// for a minute.
		orphans += len(b.LeftAtLast(t))
		applied += countWrites(b) - before
	}
	t.Logf("%d asked of servers that stood still, and given up: %d were given a lock, %d took effect all the same, "+
		"%d orphans", asked, got.Load(), applied, orphans)
	if got.Load() > 0 || orphans > 0 || applied > 0 && patient {
		t.Error("not what was promised")
	}
}

// countWrites returns how often scripts made a hold.
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

package topology_test

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

// A crowd contends for names on clients of its own, and watches whether two trust a lease of one
// name at a moment.
type crowd struct {
	t        *testing.T
	stop     context.CancelFunc
	all      sync.WaitGroup
	grants   atomic.Int64
	breaches atomic.Int64
	failures atomic.Int64 // of Lock and Release, while the server was away
	stale    atomic.Int64 // tokens that did not grow
	lost     atomic.Int64

	mu    sync.Mutex
	first time.Time // the first grant since mark
	held  map[string]*holdfast.Lease
	last  map[string]int64
}

// startCrowd starts as many goroutines for each name on each client.
func startCrowd(t *testing.T, clients []*holdfast.Client, names []string) *crowd {
	ctx, stop := context.WithCancel(context.Background())
	c := &crowd{t: t, stop: stop, held: map[string]*holdfast.Lease{}, last: map[string]int64{}}
	for _, client := range clients {
		for _, name := range names {
			c.all.Go(func() {
				for ctx.Err() == nil {
					c.lockOnce(ctx, client.Mutex(name, holdfast.WithTTL(6*time.Second)), name)
				}
			})
		}
	}
	t.Cleanup(c.end)
	return c
}

// end ends it.
func (c *crowd) end() {
	c.stop()
	c.all.Wait()
}

// lockOnce waits, holds for a moment, and gives back.
func (c *crowd) lockOnce(ctx context.Context, m *holdfast.Mutex, name string) {
	lease, err := m.Lock(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.noteFailure("Lock", err)
		}
		return
	}
	c.mu.Lock()
	if other := c.held[name]; other != nil && other.Err() == nil && lease.Err() == nil {
		c.breaches.Add(1)
	}
	if lease.Token() <= c.last[name] {
		c.stale.Add(1)
	}
	c.last[name] = lease.Token()
	if c.first.IsZero() {
		c.first = time.Now()
	}
	c.held[name] = lease
	c.mu.Unlock()
	c.grants.Add(1)
	select {
	case <-time.After(3 * time.Millisecond):
	case <-lease.Done():
		c.lost.Add(1)
	}
	c.mu.Lock()
	if c.held[name] == lease {
		delete(c.held, name)
	}
	c.mu.Unlock()
	if err := lease.Release(); err != nil {
		c.noteFailure("Release", err)
	}
}

func (c *crowd) noteFailure(what string, err error) {
	if c.failures.Add(1) <= 3 {
		c.t.Logf("%s: %v", what, err)
	}
}

// forgetFirst forgets the first grant.
func (c *crowd) forgetFirst() {
	c.mu.Lock()
	c.first = time.Time{}
	c.mu.Unlock()
}

// firstGrant returns the first grant since mark.
func (c *crowd) firstGrant() (first time.Time) {
	c.t.Helper()
	harness.Eventually(c.t, "a grant", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		first = c.first
		return !first.IsZero()
	})
	return first
}

// The master is killed while many hold and wait. The replica lacks the holds that it had not heard
// of yet: without Config.Replicas two may then hold, and the count is told. The waiters get in soon
// after the election.
func TestFailover(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	t.Run("unconfirmed", func(t *testing.T) { killMaster(t, 0) })
	t.Run("confirmed", func(t *testing.T) { killMaster(t, 1) })
}

func killMaster(t *testing.T, replicas int) {
	for kind, start := range map[string]func(*testing.T) (route harness.Route, names []string,
		kill func() (elected func())){
		"sentinel": func(t *testing.T) (harness.Route, []string, func() func()) {
			rig := redisserver.StartSentinel(t)
			return harness.SentinelRoute(rig), numberedNames(20), func() func() {
				old := rig.KillMaster()
				return func() { rig.NextMaster(old) }
			}
		},
		"cluster": func(t *testing.T) (harness.Route, []string, func() func()) {
			rig := redisserver.StartCluster(t)
			slot := rig.Slot(harness.KeyOf("0"))
			if replicas > 0 {
				rig.Follow(slot) // of the two, one confirms when the other is the master
			}
			master := rig.Master(slot)
			var names []string
			for _, name := range numberedNames(200) { // those of the node that dies
				if len(names) < 20 && rig.Master(rig.Slot(harness.KeyOf(name))) == master {
					names = append(names, name)
				}
			}
			return harness.ClusterRoute(rig), names, func() func() {
				old := rig.KillMaster(slot)
				return func() { rig.NextMaster(slot, old) }
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			route, names, kill := start(t)
			config := holdfast.Config{Replicas: holdfast.Replicas{Count: replicas}}
			clients, idle := (&harness.Deployment{Route: route}).Clients(t, config, nil), route.Client(t, config)
			var held []*holdfast.Lease
			for _, name := range names {
				// however long the election takes
				held = append(held, harness.Lock(t, idle.Mutex(name+"-held", holdfast.WithTTL(2*time.Minute))))
			}
			c := startCrowd(t, clients, names)
			harness.Eventually(t, "many grants", func() bool { return c.grants.Load() > 1000 })
			before := c.breaches.Load()
			began := time.Now()
			elected := kill()
			// Answers that are under way count as grants before the death.
			harness.Never(t, 500*time.Millisecond, func() bool { return false })
			c.forgetFirst()
			elected()
			at := time.Now()
			first := c.firstGrant()
			seen := c.grants.Load()
			harness.Eventually(t, "many grants again", func() bool { return c.grants.Load() > seen+500 })
			c.end()
			gone := 0
			for _, lease := range held {
				if harness.Checked(t, lease) != nil {
					gone++
				}
			}
			t.Logf("%s: elected %v after the kill, first grant %v after that; %d grants, %d breaches before the kill and %d after, %d tokens not larger, %d of %d idle leases lost",
				kind, at.Sub(began).Round(time.Millisecond), first.Sub(at).Round(time.Millisecond), c.grants.Load(),
				before, c.breaches.Load()-before, c.stale.Load(), gone, len(held))
			if late := first.Sub(at); harness.Measured() && late > time.Second { // beside other tests: as since waits
				t.Errorf("the first grant came %v after the election", late)
			}
			if replicas > 0 && (c.breaches.Load() > 0 || c.stale.Load() > 0 || gone > 0) {
				t.Error("what the replicas had confirmed was lost")
			}
			if before > 0 {
				t.Errorf("%d breaches before anything happened", before)
			}
		})
	}
}

func numberedNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

package topology_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

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
			return harness.SentinelRoute(rig), harness.Names(20), func() func() {
				old := rig.AwaitMaster()
				old.Kill()
				return func() { rig.NextMaster(old) }
			}
		},
		"cluster": func(t *testing.T) (harness.Route, []string, func() func()) {
			rig := redisserver.StartCluster(t)
			slot := rig.Slot(harness.KeyOf("n0"))
			if replicas > 0 {
				rig.Follow(slot) // of the two, one confirms when the other is the master
			}
			master := rig.Master(slot)
			var names []string
			for _, name := range harness.Names(200) { // those of the node that dies
				if len(names) < 20 && rig.Master(rig.Slot(harness.KeyOf(name))) == master {
					names = append(names, name)
				}
			}
			return harness.ClusterRoute(rig), names, func() func() {
				old := rig.AwaitMaster(slot)
				old.Kill()
				return func() { rig.NextMaster(slot, old) }
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			route, names, kill := start(t)
			config := holdfast.Config{TTL: 6 * time.Second, Replicas: holdfast.Replicas{Count: replicas}}
			clients, idle := (&harness.Deployment{Route: route}).Clients(t, config), route.Client(t, config)
			var held []*holdfast.Lease
			for _, name := range names {
				// however long the election takes
				held = append(held, harness.Lock(t, idle.Mutex(name+"-held", holdfast.WithTTL(2*time.Minute))))
			}
			l := &harness.Load{T: t, Names: names, Spares: true}
			stop := l.Start(clients, len(names))
			harness.Eventually(t, "many grants", func() bool { return l.Seen().Holds > 1000 })
			before := l.Seen().Overlaps
			began := time.Now()
			elected := kill()
			// Answers that are under way count as grants before the death.
			<-time.After(500 * time.Millisecond)
			l.ForgetFirst()
			elected()
			at := time.Now()
			var first time.Time
			harness.Eventually(t, "a grant", func() bool { first = l.Seen().First; return !first.IsZero() })
			seen := l.Seen().Holds
			harness.Eventually(t, "many grants again", func() bool { return l.Seen().Holds > seen+500 })
			stop()
			gone := 0
			for _, lease := range held {
				if harness.Checked(t, lease) != nil {
					gone++
				}
			}
			t.Logf("%s: elected %v after the kill, first grant %v after that; %d grants, %d breaches before the kill "+
				"and %d after, %d tokens not larger, %d of %d idle leases lost",
				kind, at.Sub(began).Round(time.Millisecond), first.Sub(at).Round(time.Millisecond), l.Seen().Holds,
				before, l.Seen().Overlaps-before, l.Seen().Smaller, gone, len(held))
			if late := first.Sub(at); harness.Measured() && late > time.Second { // beside other tests: as since waits
				t.Errorf("the first grant came %v after the election", late)
			}
			if replicas > 0 && (l.Seen().Overlaps > 0 || l.Seen().Smaller > 0 || gone > 0) {
				t.Error("what the replicas had confirmed was lost")
			}
			if before > 0 {
				t.Errorf("%d breaches before anything happened", before)
			}
		})
	}
}

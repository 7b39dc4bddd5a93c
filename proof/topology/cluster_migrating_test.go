package topology_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A slot that is on its way refuses to make a key that is not there, also one that a script has
// just deleted: a script that turns one type into another then ends in the middle, and a hold is
// gone. Here the slot stays on its way while somebody joins the line of a held lock, gives up, and
// while the holder renews; then it arrives.
func TestSlotOnItsWay(t *testing.T) {
	harness.Long(t)
	servers, ids := redisserver.StartTwoMasters(t)
	route := func(srv *redisserver.Server) harness.Route {
		return harness.Route{Topology: harness.Cluster, Addrs: []string{srv.Addr()}}
	}
	a, b := route(servers[0]).Client(t, holdfast.Config{}), route(servers[1]).Client(t, holdfast.Config{})
	for name, keys := range map[string]bool{"keys still there": false, "keys moved": true} {
		t.Run(name, func(t *testing.T) {
			lock := "a" // slot 15495, at the second
			lease := harness.Lock(t, a.Mutex(lock, holdfast.WithTTL(6*time.Second)))
			slot := harness.Must(t, servers[0], "CLUSTER", "KEYSLOT", harness.KeyOf(lock))
			harness.Must(t, servers[0], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[1])
			harness.Must(t, servers[1], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[0])
			if keys {
				harness.Must(t, servers[1], "MIGRATE", "127.0.0.1", servers[0].Port(), harness.KeyOf(lock), 0, 5000)
			}
			waiter := harness.Claim(harness.Within(t, time.Minute), b.Mutex(lock))
			brief := harness.Claim(harness.Within(t, 300*time.Millisecond), b.Mutex(lock, holdfast.WithStrictOrder()))
			harness.Signalled(t, "the other gives up", brief.Done)
			until := lease.Until()
			harness.Eventually(t, "a renewal", func() bool { return lease.Err() != nil || lease.Until().After(until) })
			if err := lease.Err(); err != nil {
				t.Fatalf("the holder: %v", err)
			}
			moveKeys(t, servers[1], servers[0], slot)
			for _, srv := range servers {
				harness.Must(t, srv, "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
			}
			harness.Eventually(t, "both agree",
				// else a late message takes it back below
				func() bool { return currentEpoch(t, servers[0]) == currentEpoch(t, servers[1]) })
			if err := harness.Checked(t, lease); err != nil {
				t.Fatalf("the holder, after the slot arrived: %v", err)
			}
			select {
			case <-waiter.Done:
				t.Fatalf("the waiter got in beside the holder: %v", waiter.Err)
			default:
			}
			harness.Release(t, lease)
			harness.HandBack(t, waiter.Got(t))
			harness.Must(t, servers[1], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0]) // and back
			harness.Must(t, servers[0], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
			moveKeys(t, servers[0], servers[1], slot)
			for _, srv := range []*redisserver.Server{servers[1], servers[0]} { // the new owner first
				harness.Must(t, srv, "CLUSTER", "SETSLOT", slot, "NODE", ids[1])
			}
		})
	}
}

// moveKeys moves all keys of a slot.
func moveKeys(t *testing.T, from, to *redisserver.Server, slot any) {
	t.Helper()
	for _, key := range harness.Must(t, from, "CLUSTER", "GETKEYSINSLOT", slot, 100).([]any) {
		harness.Must(t, from, "MIGRATE", "127.0.0.1", to.Port(), key, 0, 5000)
	}
}

// currentEpoch returns the newest that a node of a cluster has heard of.
func currentEpoch(t *testing.T, srv *redisserver.Server) string {
	t.Helper()
	_, rest, _ := strings.Cut(harness.Must(t, srv, "CLUSTER", "INFO").(string), "cluster_current_epoch:")
	n, _, _ := strings.Cut(rest, "\r\n")
	return n
}

package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A slot that is on its way refuses to make a key that is not there, also one that a script has just deleted: a script
// that turns one type into another then ends in the middle, and a hold is gone. Here the slot stays on its way while
// somebody joins the line of a held lock, gives up, and while the holder renews; then it arrives.
func TestSlotOnItsWay(t *testing.T) {
	long(t)
	servers, ids := startCluster(t)
	a := closing(t, clusterClient(t, servers), 0)
	b := closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{servers[1].Addr()}}), 0)
	for name, keys := range map[string]bool{"keys still there": false, "keys moved": true} {
		t.Run(name, func(t *testing.T) {
			lock := "a" // slot 15495, at the second
			lease, err := a.Mutex(lock, holdfast.WithTTL(6*time.Second)).Lock(within(t, patience))
			if err != nil {
				t.Fatal(err)
			}
			slot := do(t, servers[0], "CLUSTER", "KEYSLOT", keyOf(lock))
			do(t, servers[0], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[1])
			do(t, servers[1], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[0])
			if keys {
				do(t, servers[1], "MIGRATE", "127.0.0.1", servers[0].Port(), keyOf(lock), 0, 5000)
			}
			waiter := claim(within(t, time.Minute), b.Mutex(lock))
			brief := claim(within(t, 300*time.Millisecond), b.Mutex(lock, holdfast.WithStrictOrder()))
			signalled(t, "the other gives up", brief.done)
			until := lease.Until()
			eventually(t, "a renewal", func() bool { return lease.Err() != nil || lease.Until().After(until) })
			if err := lease.Err(); err != nil {
				t.Fatalf("the holder: %v", err)
			}
			for {
				list, _ := do(t, servers[1], "CLUSTER", "GETKEYSINSLOT", slot, 10).([]any)
				if len(list) == 0 {
					break
				}
				do(t, servers[1], append([]any{"MIGRATE", "127.0.0.1", servers[0].Port(), "", 0, 5000, "KEYS"}, list...)...)
			}
			for _, srv := range servers {
				do(t, srv, "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
			}
			eventually(t, "both agree", func() bool { return epoch(t, servers[0]) == epoch(t, servers[1]) }) // else a late message takes it back below
			if err := checked(t, lease); err != nil {
				t.Fatalf("the holder, after the slot arrived: %v", err)
			}
			select {
			case <-waiter.done:
				t.Fatalf("the waiter got in beside the holder: %v", waiter.err)
			default:
			}
			release(t, lease)
			handBack(t, waiter.got(t))
			do(t, servers[1], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0]) // and back
			do(t, servers[0], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
			for _, key := range do(t, servers[0], "CLUSTER", "GETKEYSINSLOT", slot, 100).([]any) {
				do(t, servers[0], "MIGRATE", "127.0.0.1", servers[1].Port(), key, 0, 5000)
			}
			for _, srv := range []*redisserver.Server{servers[1], servers[0]} { // the new owner first
				do(t, srv, "CLUSTER", "SETSLOT", slot, "NODE", ids[1])
			}
		})
	}
}

// epoch is the newest that a node of a cluster has heard of.
func epoch(t *testing.T, srv *redisserver.Server) string {
	t.Helper()
	_, rest, _ := strings.Cut(do(t, srv, "CLUSTER", "INFO").(string), "cluster_current_epoch:")
	n, _, _ := strings.Cut(rest, "\r\n")
	return n
}

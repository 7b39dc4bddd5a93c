package topology_test

import (
	"slices"
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
	rig := redisserver.StartCluster(t)
	route := harness.ClusterRoute(rig)
	a, b := route.Client(t, holdfast.Config{}), route.Client(t, holdfast.Config{})
	key := harness.KeyOf("a")
	for name, send := range map[string]func() (arrive func()){
		"keys still there": func() func() {
			slot, masters := rig.Slot(key), rig.Masters()
			from := rig.Master(slot)
			to := masters[slices.IndexFunc(masters, func(s *redisserver.Server) bool { return s != from })]
			harness.Must(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", harness.Must(t, from, "CLUSTER", "MYID"))
			harness.Must(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", harness.Must(t, to, "CLUSTER", "MYID"))
			return func() { rig.Move(to, slot) }
		},
		"keys moved": func() func() { return rig.Send(key) },
	} {
		t.Run(name, func(t *testing.T) {
			lease := harness.Lock(t, a.Mutex("a", holdfast.WithTTL(6*time.Second)))
			arrive := send()
			waiter := harness.Claim(harness.Within(t, time.Minute), b.Mutex("a"))
			brief := harness.Claim(harness.Within(t, 300*time.Millisecond), b.Mutex("a", holdfast.WithStrictOrder()))
			harness.Signalled(t, "the other gives up", brief.Done)
			until := lease.Until()
			harness.Eventually(t, "a renewal", func() bool { return lease.Err() != nil || lease.Until().After(until) })
			if err := lease.Err(); err != nil {
				t.Fatalf("the holder: %v", err)
			}
			arrive()
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
		})
	}
}

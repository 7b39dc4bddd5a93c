package wire

import (
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"encoding/hex"
	"testing"
)

// Trap 30: nothing computes SHA-1 at run time, so the digest is a constant.
func TestProbeDigest(t *testing.T) {
	sum := sha1.Sum([]byte(Source(probeFiles, "ready"))) //nolint:gosec // as above
	if got := hex.EncodeToString(sum[:]); got != probeDigest {
		t.Errorf("the digest of ready.lua is %s, not %s", got, probeDigest)
	}
}

// Every master of a cluster is asked, by a slot of its own; replicas and nodes without slots are
// not.
func TestProbeTargets(t *testing.T) {
	targets := targetsOf(Topology{Cluster: true, Nodes: []Node{
		{ID: "a", Role: "master", Slots: []SlotRange{{7, 9}}, Eviction: "noeviction"},
		{ID: "b", Role: "replica", Slots: []SlotRange{{7, 9}}},
		{ID: "c", Role: "master"}, {ID: "d", Role: "master", Slots: []SlotRange{{0, 6}, {10, 16383}},
			Eviction: "volatile-ttl"},
	}})
	want := []probeTarget{{"a", 7, "noeviction"}, {"d", 0, "volatile-ttl"}}
	if len(targets) != 2 || targets[0] != want[0] || targets[1] != want[1] {
		t.Errorf("got %v", targets)
	}
}

package topology_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Locks of a quorum and those that New keeps on one of its masters know nothing of each other,
// whatever their names (trap 27): also those that a quorum's own keys may be taken for.
func TestQuorumBesideSingleLocks(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	d := harness.Deploy(t, harness.Quorum)
	majority := d.Client(t, holdfast.Config{TrustNewNodes: true})
	one, other := harness.Locker(t, d.Masters[0].Addr(), nil), harness.Locker(t, d.Masters[0].Addr(), nil)
	names := []string{"quorum", "%quorum", "line", "watchers", "x"}
	everywhere := func() {
		t.Helper()
		for _, name := range names {
			// asks again where two do not answer within a second
			if err := harness.Given(majority.Mutex(name).Lock(harness.Within(t, harness.Patience))); err != nil {
				t.Fatalf("%q of the quorum: %v", name, err)
			}
		}
		harness.Eventually(t, "all nodes answer and count", func() bool {
			nodes, err := majority.Quorum(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return !slices.ContainsFunc(nodes,
				func(node lockinfo.Master) bool { return node.Err != nil || !node.Counts })
		})
	}
	everywhere()
	for _, name := range names {
		lease := harness.Lock(t, one.Mutex(name))
		next := harness.Claim(harness.Within(t, harness.Patience), other.Mutex(name))
		harness.Eventually(t, "the other waits in the queue", func() bool {
			var held *holdfast.HeldError
			_, err := one.Mutex(name).TryLock(harness.Within(t, harness.Patience))
			return errors.As(err, &held) && held.Waiters == 1
		})
		everywhere()
		harness.Release(t, lease)
		harness.HandBack(t, next.Got(t))
		everywhere()
	}
}

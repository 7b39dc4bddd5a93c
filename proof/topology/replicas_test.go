package topology_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 38: what the replicas do not have is not trusted: neither a grant, nor a hand-over, nor a
// renewal.
func TestReplicasConfirm(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	srv, replicas := redisserver.StartReplicated(t, 2)
	seen := new(harness.Events)
	config := func() *holdfast.Config {
		return &holdfast.Config{
			TTL: 6 * time.Second, Replicas: holdfast.Replicas{Count: 2, Timeout: 400 * time.Millisecond},
			Observer: seen,
		}
	}
	c, other := harness.Locker(t, srv.Addr(), config()), harness.Locker(t, srv.Addr(), config())
	silent := func() { replicas[0].Stop() }
	speak := func() {
		replicas[0].Continue()
		harness.Eventually(t, "both confirm again",
			func() bool { return harness.Must(t, srv, "WAIT", 2, 50) == int64(2) })
	}
	minute := holdfast.WithTTL(time.Minute) // it does not end by itself
	undone := func(t *testing.T, names []string) {
		t.Helper()
		for _, name := range names {
			harness.Eventually(t, name+" is free",
				func() bool { return harness.Must(t, srv, "EXISTS", harness.KeyOf(name)) == int64(0) })
		}
	}
	unconfirmed := func(t *testing.T, try func() error, names ...string) {
		t.Helper()
		var failure *holdfast.StoreError
		err := try()
		for errors.As(err, &failure) && (failure.Kind == holdfast.StoreNoAnswer ||
			failure.Kind == holdfast.StoreUnreachable) {
			undone(t, names) // the master stood still, and said nothing of replicas
			err = try()
		}
		if !errors.As(err, &failure) || failure.Kind != holdfast.StoreNoReplicas || !failure.MayHaveApplied ||
			errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), "1 of 2 replicas") &&
			!strings.Contains(err.Error(), "0 of 2 replicas") {
			t.Errorf("got %v", err)
		}
		undone(t, names)
	}

	t.Run("grant", func(t *testing.T) {
		harness.Release(t, harness.Lock(t, c.Mutex("n")))
		silent()
		unconfirmed(t,
			func() error { _, err := c.Mutex("n", minute).TryLock(harness.Within(t, harness.Patience)); return err },
			"n")
		unconfirmed(t, func() error {
			_, err := c.All([]string{"a", "b"}, minute).TryLock(harness.Within(t, harness.Patience))
			return err
		}, "a", "b")
		next := harness.Claim(harness.Within(t, harness.Patience), c.Mutex("n")) // one who waits goes on
		stillWaits(t, next)
		speak()
		harness.HandBack(t, next.Got(t))
	})
	t.Run("renewal", func(t *testing.T) {
		lease := harness.Lock(t, c.Mutex("n"))
		silent()
		failed := seen.Count(holdfast.EventRetried)
		// so none from before is under way
		harness.Eventually(t, "a renewal fails", func() bool { return seen.Count(holdfast.EventRetried) > failed })
		before := seen.Count(holdfast.EventRenewed)
		harness.Signalled(t, "the lease is lost", lease.Done())
		var lost *holdfast.LostError
		if !errors.As(context.Cause(leased.Context(lease)), &lost) || lost.Reason != holdfast.LossExpired {
			t.Errorf("lost by %v", context.Cause(leased.Context(lease)))
		}
		if n := seen.Count(holdfast.EventRenewed) - before; n > 0 {
			t.Errorf("%d renewals count without the replicas", n)
		}
		speak()
		_ = lease.Release()
	})
	t.Run("hand-over", func(t *testing.T) {
		lease := harness.Lock(t, c.Mutex("n"))
		next := harness.Claim(harness.Within(t, harness.Patience), other.Mutex("n"))
		harness.Waiting(t, srv, "n", 1)
		silent()
		harness.Release(t, lease)
		stillWaits(t, next)
		speak()
		harness.HandBack(t, next.Got(t))
	})
}

// stillWaits fails when a claimant is in, or has given up, although it must not be.
func stillWaits(t *testing.T, c *harness.Claimant) {
	t.Helper()
	select {
	case <-c.Done:
		t.Errorf("got %v, %v", c.Lease, c.Err)
	case <-time.After(500 * time.Millisecond):
	}
}

// Trap 38, whole: the old master stands still during a fail-over and goes on after it, beside the
// new one. A holder whose client still speaks to the old one trusts nothing that it says alone.
// Without Config.Replicas it does: that is told.
func TestSplitBrain(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	for name, replicas := range map[string]int{"confirmed": 1, "unconfirmed": 0} {
		t.Run(name, func(t *testing.T) {
			rig := redisserver.StartSentinel(t)
			old := rig.AwaitMaster()
			config := func() *holdfast.Config {
				return &holdfast.Config{TTL: 10 * time.Second,
					Replicas: holdfast.Replicas{Count: replicas, Timeout: 200 * time.Millisecond}}
			}
			stuck := harness.Locker(t, old.Addr(), config()) // never hears of the new master
			held := harness.Lock(t, stuck.Mutex("n"))
			old.Stop()
			had := harness.Must(t, rig.NextMaster(old), "EXISTS", harness.KeyOf("n")) == int64(1)
			survivor := harness.SentinelRoute(rig).Client(t, *config())
			next := harness.Claim(harness.Within(t, time.Minute), survivor.Mutex("n"))
			rig.Settled() // the other replica follows the new master, and confirms nothing to the old one any more
			old.Continue()
			<-next.Done
			if next.Err != nil {
				t.Fatal(next.Err)
			}
			two := held.Err() == nil
			lease, err := stuck.Mutex("n").TryLock(harness.Within(t, harness.Patience))
			granted := err == nil && lease.Err() == nil && next.Lease.Err() == nil
			t.Logf("%s: the new master had the grant: %v; two trust a lease of one name: %v; the old master grants "+
				"beside the new one: %v", name, had, two, granted)
			if replicas > 0 && (two || granted) {
				t.Error("what the old side says alone is trusted")
			}
			harness.Release(t, next.Lease)
		})
	}
}

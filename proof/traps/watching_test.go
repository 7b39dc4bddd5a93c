package traps_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 17, for those who wait without wanting to hold: the subscription is killed while one waits
// for a latch, or watches an election, and what it waits for happens before the subscription is
// there again, at the same time, or after.
func TestWatcherSubscriptionKilledSeesChange(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	one, other := harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)), harness.Locker(t, srv.Addr(), harness.Brief(time.Minute))
	for what, c := range map[string]struct {
		wait   func(ctx context.Context, name string) error
		happen func(ctx context.Context, name string) error
	}{
		"latch": {
			func(ctx context.Context, name string) error { return other.Latch(name).Wait(ctx) },
			func(ctx context.Context, name string) error { return one.Latch(name).Set(ctx, 0) },
		},
		"election": {
			func(ctx context.Context, name string) error {
				for _, err := range other.Election(name).Observe(ctx) {
					return err
				}
				return nil
			},
			func(ctx context.Context, name string) error {
				lease, err := one.Election(name).Campaign(ctx)
				if err == nil {
					t.Cleanup(func() { _ = lease.Release() })
				}
				return err
			},
		},
	} {
		var quickest [3]time.Duration
		for round := range 6 {
			name, ctx := fmt.Sprint(what, round), harness.Within(t, harness.Patience)
			done := make(chan error, 1)
			go func() { done <- c.wait(ctx, name) }()
			harness.Eventually(t, "it watches", func() bool {
				n, _ := harness.Must(t, srv, "EXISTS", "holdfast:{"+name+"}:watchers").(int64)
				return n == 1
			})
			began, happened := time.Now(), make(chan error, 1)
			switch harness.Must(t, srv, "CLIENT", "KILL", "TYPE", "pubsub"); round % 3 {
			case 0:
				happened <- c.happen(ctx, name)
			case 1:
				go func() { happened <- c.happen(ctx, name) }()
			case 2:
				harness.Eventually(t, "it listens again", func() bool { return harness.Listening(t, srv) == 1 })
				happened <- c.happen(ctx, name)
			}
			if err := <-happened; err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			quicker(&quickest[round%3], began)
		}
		for way, took := range quickest {
			if harness.Measured() && took > 4*time.Second { // it looks by itself no sooner
				t.Errorf("%s, way %d: told after %v", what, way, took)
			}
		}
	}
}

// A leader that crashes is replaced when its TTL is over, and who watches is told of the next.
func TestElectionLeaderCrashedIsReplaced(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const ttl = 2 * time.Second
	crashes, next, watches := harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)), harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)), harness.Locker(t, srv.Addr(), harness.Brief(time.Minute))
	ctx := harness.Within(t, harness.Patience)
	first, err := crashes.Election("e", holdfast.WithTTL(ttl), holdfast.WithoutRenewal()).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	won := make(chan *holdfast.Lease, 1)
	go func() {
		lease, err := next.Election("e").Campaign(ctx)
		if err != nil {
			t.Error(err)
		}
		won <- lease
	}()
	told := 0
	for leader, err := range watches.Election("e").Observe(ctx) {
		if errors.Is(err, holdfast.ErrNoLeader) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if told++; leader.Owner == first.Owner() {
			continue
		}
		if told > 2 {
			t.Errorf("the next leader is told as number %d", told)
		}
		lease := <-won
		if lease == nil || lease.Owner() != leader.Owner || lease.Token() != leader.Token {
			t.Fatalf("told %+v", leader)
		}
		_ = lease.Release()
		break
	}
}

package traps_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// An uncontended lock costs one command, as does its release; only the first of a client asks
// before what the server is and what time it has.
func TestMutexPairCostsTwoCommands(t *testing.T) {
	t.Parallel()
	_, p := harness.Proxied(t)
	m := harness.Locker(t, p.Addr(), nil).Mutex("n")
	p.Record()
	harness.Release(t, harness.Lock(t, m))
	first := slices.DeleteFunc(harness.SentTo(p), isGreeting)
	if want := []string{"INFO", "TIME", "EVALSHA", "EVAL", "EVALSHA", "EVAL"}; !slices.Equal(first, want) {
		t.Errorf("the first pair sent %v, want %v", first, want)
	}
	const pairs = 50
	p.Record()
	for range pairs {
		harness.Release(t, harness.Lock(t, m))
	}
	if sent := harness.SentTo(p); len(sent) != 2*pairs ||
		slices.ContainsFunc(sent, func(name string) bool { return name != "EVALSHA" }) {
		t.Errorf("%d pairs sent %d commands: %v", pairs, len(sent), sent)
	}
}

// isGreeting reports whether a command is one of those that a new connection begins with.
func isGreeting(name string) bool { return name == "HELLO" || name == "CLIENT" }

// Trap 15: 1,000 leases of two clients cost their renewals, a hundred in a command, and no
// goroutine each. An idle client sends nothing.
func TestLeasesIdleCostBatchedRenewals(t *testing.T) {
	harness.Long(t)
	srv := redisserver.Start(t)
	const each, ttl, rounds = 500, 6 * time.Second, 2
	before := runtime.NumGoroutine()
	var leases [2][each]*holdfast.Lease
	var seen [2]harness.Events
	var all sync.WaitGroup
	for i := range leases {
		c := harness.Locker(t, srv.Addr(), &holdfast.Config{TTL: ttl, Observer: &seen[i]},
			func(o *redis.Options) { o.PoolSize = 8 })
		for g := range 8 {
			all.Go(func() {
				for n := g; n < each; n += 8 {
					leases[i][n], _ = c.Mutex(fmt.Sprint("n", i, "/", n)).Lock(harness.Within(t, harness.Patience))
				}
			})
		}
	}
	all.Wait()
	renewed := func(n int) bool {
		return seen[0].Count(holdfast.EventRenewed) >= n*each && seen[1].Count(holdfast.EventRenewed) >= n*each
	}
	harness.Eventually(t, "the first renewals", func() bool { return renewed(1) })
	first := countRenewals(&seen[0]) + countRenewals(&seen[1])
	calls, highest := harness.Scripts(srv), 0
	harness.Eventually(t, "the next rounds", func() bool {
		highest = max(highest, runtime.NumGoroutine()-before)
		return renewed(1 + rounds)
	})
	calls = harness.Scripts(srv) - calls
	// rounds, by the renewals in them
	told := float64(countRenewals(&seen[0])+countRenewals(&seen[1])-first) / (2 * each)
	t.Logf("%d commands for 1,000 leases in %.1f rounds of renewals, at most %d more goroutines", calls, told, highest)
	// Ten full commands a round, and as many again for those that were taken while others were
	// renewed, or later.
	if most := int(30 * (told + 1)); calls > most {
		t.Errorf("%d commands, at most %d are expected", calls, most)
	}
	if highest > 60 { // connections, and the renewals under way; not one a lease
		t.Errorf("%d more goroutines", highest)
	}
	for i := range leases {
		for n, lease := range leases[i] {
			if lease == nil {
				t.Fatalf("no lease %d of client %d", n, i)
			}
			if err := lease.Err(); err != nil {
				t.Fatalf("lease %d of client %d: %v", n, i, err)
			}
			all.Go(func() { harness.Release(t, lease) })
		}
	}
	all.Wait()
	calls = harness.Scripts(srv)
	quiet := time.After(ttl / 2)
	<-quiet
	if n := harness.Scripts(srv) - calls; n != 0 {
		t.Errorf("%d commands of idle clients", n)
	}
}

// countRenewals returns how many renewals an observer heard of, those that failed too: each is one
// ask.
func countRenewals(seen *harness.Events) int {
	return seen.Count(holdfast.EventRenewed) + seen.Count(holdfast.EventRetried)
}

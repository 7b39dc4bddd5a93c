package traps_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// counts are how often something was sent, since the server began.
func counts(srv *redisserver.Server) (scripts, messages int) {
	stats := srv.CommandStats()
	return stats["eval"] + stats["evalsha"], stats["publish"]
}

func scripts(srv *redisserver.Server) int { n, _ := counts(srv); return n }

// Trap 16: each release wakes each waiter, so that an acquisition costs more, the more wait. Here
// it costs one command to join, one to give back and one message, whether 8 wait, 200 or 2,000.
func TestMutexReleaseWakesOneWaiter(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const clients = 4
	var cs [clients]*holdfast.Client
	config := &holdfast.Config{TTL: time.Minute}
	for i := range cs {
		cs[i] = harness.Locker(t, srv.Addr(), config, func(o *redis.Options) { o.PoolSize = 8 })
	}
	outside := harness.Locker(t, srv.Addr(), config)
	for _, n := range []int{8, 200, 2000} {
		if n > 200 && !harness.Thorough && testing.Short() {
			continue
		}
		name := fmt.Sprint("n", n)
		for i := range cs { // each listens from here on
			holder := harness.Lock(t, outside.Mutex(name))
			first := harness.Claim(harness.Within(t, harness.Patience), cs[i].Mutex(name))
			harness.Waiting(t, srv, name, 1)
			harness.Release(t, holder)
			harness.HandBack(t, first.Got(t))
		}
		holder := harness.Lock(t, outside.Mutex(name))
		scripts, messages := counts(srv)
		began := time.Now()
		var all sync.WaitGroup
		inside, failed := new(harness.Room), make(chan error, n)
		for i := range n {
			all.Go(func() {
				lease, err := cs[i%clients].Mutex(name, holdfast.WithStrictOrder()).Lock(harness.Within(t, time.Minute))
				if err == nil {
					inside.Enter(t, lease)
					inside.Leave(lease)
					harness.HandBack(t, lease)
				}
				failed <- err
			})
		}
		harness.Waiting(t, srv, name, int64(n))
		joining := time.Since(began)
		harness.Release(t, holder)
		all.Wait()
		took := time.Since(began)
		for range n {
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
		}
		s, m := counts(srv)
		scripts, messages = s-scripts, m-messages
		t.Logf("%d waiters: %.2f commands and %.2f messages an acquisition, in %v", n, float64(scripts)/float64(n), float64(messages)/float64(n), took)
		again := int(took/time.Second) * n  // where the machine is slow: signs of life, and what was not answered in time
		if joining > 200*time.Millisecond { // whose place took half a claim's time to come believes no message: it asks
			again += n
		}
		if most := 2*n + 1 + again + n/20 + 8; scripts > most {
			t.Errorf("%d waiters: %d commands, at most %d are expected", n, scripts, most)
		}
		if inside.Were != n || messages > n+n/20+4 {
			t.Errorf("%d waiters: %d got in, by %d messages", n, inside.Were, messages)
		}
	}
}

// Trap 21: a subscription for each waiter or each name. All waiters of a client share one, and it
// is let go.
func TestClientSharesOneSubscription(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const names = 250
	holder, waiter := harness.Locker(t, srv.Addr(), nil), harness.Locker(t, srv.Addr(), nil)
	var leases [names]*holdfast.Lease
	var claims [names]*harness.Claimant
	for i := range names {
		name := fmt.Sprint("n", i)
		leases[i] = harness.Lock(t, holder.Mutex(name))
		claims[i] = harness.Claim(harness.Within(t, time.Minute), waiter.Mutex(name))
	}
	listeners := func() (n int) {
		list := harness.Must(t, srv, "CLIENT", "LIST", "TYPE", "pubsub").(string)
		for _, c := range list {
			if c == '\n' {
				n++
			}
		}
		return n
	}
	for i := range names {
		harness.Waiting(t, srv, fmt.Sprint("n", i), 1)
	}
	harness.Eventually(t, "one connection listens", func() bool { return listeners() == 1 })
	if n := srv.CommandStats()["subscribe"]; n > 5 { // one, and one more for each that was not answered in time
		t.Errorf("%d SUBSCRIBE for %d names", n, names)
	}
	for i := range names {
		harness.Release(t, leases[i])
		harness.HandBack(t, claims[i].Got(t))
	}
	if harness.Thorough { // it lingers for ten seconds, which fake clocks test too
		harness.Eventually(t, "it is let go", func() bool { return listeners() == 0 })
	}
	_ = waiter.Close()
	harness.Eventually(t, "it is let go", func() bool { return listeners() == 0 })
}

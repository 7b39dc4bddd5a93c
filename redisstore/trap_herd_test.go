package redisstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// counts are how often something was sent, since the server began.
func counts(srv *redisserver.Server) (scripts, messages int) {
	stats := srv.CommandStats()
	return stats["eval"] + stats["evalsha"], stats["publish"]
}

func scripts(srv *redisserver.Server) int { n, _ := counts(srv); return n }

// Trap 16: each release wakes each waiter, so that an acquisition costs more, the more wait. Here it costs one command to
// join, one to give back and one message, whether 8 wait, 200 or 2,000.
func TestNoHerd(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const clients = 4
	var cs [clients]*holdfast.Client
	config := &holdfast.Config{TTL: time.Minute}
	for i := range cs {
		cs[i] = locker(t, srv.Addr(), config, func(o *redis.Options) { o.PoolSize = 8 })
	}
	outside := locker(t, srv.Addr(), config)
	for _, n := range []int{8, 200, 2000} {
		if n > 200 && !thorough && testing.Short() {
			continue
		}
		name := fmt.Sprint("n", n)
		for i := range cs { // each listens from here on
			holder := lock(t, outside.Mutex(name))
			first := claim(within(t, patience), cs[i].Mutex(name))
			waiting(t, srv, name, 1)
			release(t, holder)
			handBack(t, first.got(t))
		}
		holder := lock(t, outside.Mutex(name))
		scripts, messages := counts(srv)
		began := time.Now()
		var all sync.WaitGroup
		inside, failed := new(room), make(chan error, n)
		for i := range n {
			all.Go(func() {
				lease, err := cs[i%clients].Mutex(name, holdfast.WithStrictOrder()).Lock(within(t, time.Minute))
				if err == nil {
					inside.enter(t, lease)
					inside.leave(lease)
					handBack(t, lease)
				}
				failed <- err
			})
		}
		waiting(t, srv, name, int64(n))
		joining := time.Since(began)
		release(t, holder)
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
		if inside.were != n || messages > n+n/20+4 {
			t.Errorf("%d waiters: %d got in, by %d messages", n, inside.were, messages)
		}
	}
}

// Trap 21: a subscription for each waiter or each name. All waiters of a client share one, and it is let go.
func TestOneSubscription(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const names = 250
	holder, waiter := locker(t, srv.Addr(), nil), locker(t, srv.Addr(), nil)
	var leases [names]*holdfast.Lease
	var claims [names]*claimant
	for i := range names {
		name := fmt.Sprint("n", i)
		leases[i] = lock(t, holder.Mutex(name))
		claims[i] = claim(within(t, time.Minute), waiter.Mutex(name))
	}
	listeners := func() (n int) {
		list := must(t, srv, "CLIENT", "LIST", "TYPE", "pubsub").(string)
		for _, c := range list {
			if c == '\n' {
				n++
			}
		}
		return n
	}
	for i := range names {
		waiting(t, srv, fmt.Sprint("n", i), 1)
	}
	eventually(t, "one connection listens", func() bool { return listeners() == 1 })
	if n := srv.CommandStats()["subscribe"]; n > 5 { // one, and one more for each that was not answered in time
		t.Errorf("%d SUBSCRIBE for %d names", n, names)
	}
	for i := range names {
		release(t, leases[i])
		handBack(t, claims[i].got(t))
	}
	if thorough { // it lingers for ten seconds, which fake clocks test too
		eventually(t, "it is let go", func() bool { return listeners() == 0 })
	}
	_ = waiter.Close()
	eventually(t, "it is let go", func() bool { return listeners() == 0 })
}

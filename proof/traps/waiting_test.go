package traps_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 17: a missed message costs the whole lease, or hangs for ever. The subscription is killed
// while one waits, and the lock is given back before it is there again, or at the same time, or
// after.
func TestWaiterSubscriptionKilledGetsIn(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	one, other := harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)), harness.Locker(t, srv.Addr(), harness.Brief(time.Minute))
	var quickest [3]time.Duration
	for round := range 6 {
		name := fmt.Sprint("n", round)
		holder := harness.Lock(t, one.Mutex(name))
		next := harness.Claim(harness.Within(t, harness.Patience), other.Mutex(name))
		harness.Waiting(t, srv, name, 1)
		harness.Eventually(t, "it listens", func() bool { return harness.Listening(t, srv) == 1 })
		began := time.Now()
		switch harness.Must(t, srv, "CLIENT", "KILL", "TYPE", "pubsub"); round % 3 {
		case 0:
			harness.Release(t, holder)
		case 1:
			go func() { _ = holder.Release() }()
		case 2:
			harness.Eventually(t, "it listens again", func() bool { return harness.Listening(t, srv) == 1 })
			harness.Release(t, holder)
		}
		harness.HandBack(t, next.Got(t))
		quicker(&quickest[round%3], began)
	}
	for way, took := range quickest { // its next sign of life is at least as far
		if harness.Measured() && took > 4*time.Second {
			t.Errorf("way %d: in after %v", way, took)
		}
	}
}

// quicker keeps the shorter of two times: of several, one at least is not lengthened by a machine
// that stood still.
func quicker(took *time.Duration, began time.Time) {
	if d := time.Since(began); *took == 0 || d < *took {
		*took = d
	}
}

// Trap 18: a dead waiter at the head blocks the others. One whose process crashed is passed over,
// and one that cannot be told from a living one gets its claim; the next asks when the last
// holder's time would have been over, as it was told.
func TestQueueDeadWaiterIsPassedOver(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(*fault.Proxy){
		"crashed":   func(p *fault.Proxy) { p.Silence(); p.Cut() },
		"half-open": (*fault.Proxy).Silence,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p := harness.Proxied(t)
			holder := harness.Lock(t, harness.Locker(t, srv.Addr(), harness.Brief(6*time.Second)).Mutex("n"))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			dead := harness.Claim(ctx, harness.Locker(t, p.Addr(), &holdfast.Config{ReleaseTimeout: time.Millisecond, Label: "dead"}).Mutex("n"))
			harness.Waiting(t, srv, "n", 1)
			harness.Eventually(t, "it listens", func() bool { return harness.Listening(t, srv) == 1 })
			next := harness.Claim(harness.Within(t, harness.Patience), harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)).Mutex("n"))
			harness.Waiting(t, srv, "n", 2)
			harness.Eventually(t, "both listen", func() bool { return harness.Listening(t, srv) == 2 })
			die(p)
			if name == "crashed" {
				harness.Eventually(t, "the server knows", func() bool { return harness.Listening(t, srv) == 1 })
			}
			began := time.Now()
			harness.Release(t, holder)
			if value, _ := harness.Must(t, srv, "GET", harness.KeyOf("n")).(string); name == "crashed" && strings.HasSuffix(value, "dead") {
				t.Error("the dead one was not passed over")
			}
			harness.HandBack(t, next.Got(t))
			if took := time.Since(began); harness.Measured() && took > 12*time.Second { // well before the dead one's place is swept
				t.Errorf("in after %v", took)
			}
			cancel()
			harness.Signalled(t, "the dead one", dead.Done)
		})
	}
}

// Trap 19: order inside one second is lexicographic, and waiting long loses one's place. Here all
// join within a second.
func TestQueueJoiningKeepsOrder(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const n = 12
	holder, heard := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n")), spyOn(t, srv)
	var mu sync.Mutex
	var turns []turn
	var all sync.WaitGroup
	for i := range n {
		m := harness.Locker(t, srv.Addr(), nil).Mutex("n")
		all.Go(func() {
			lease, err := m.Lock(harness.Within(t, harness.Patience))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			turns = append(turns, turn{strconv.Itoa(i), lease.Owner(), lease.Token()})
			mu.Unlock()
			harness.HandBack(t, lease)
		})
		harness.Waiting(t, srv, "n", int64(i+1))
	}
	harness.Eventually(t, "all listen", func() bool { return harness.Listening(t, srv) == n }) // who does not is passed over
	harness.Release(t, holder)
	all.Wait()
	place := -1
	for _, label := range heard.inTime(t, srv, turns) {
		i, _ := strconv.Atoi(label)
		if i < place {
			t.Fatalf("number %d came after number %d", i, place)
		}
		place = i
	}
}

// Trap 20: a waiter that gives up at the very moment of its grant keeps the lock from all others. A
// thousand give up around that moment; none is stuck, two are never in, and at the end the lock is
// free at once.
func TestWaiterGivesUpAtGrantPassesOn(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const clients, each = 4, 250
	var all sync.WaitGroup
	var inside harness.Room
	var got, gaveUp atomic.Int64
	for range clients {
		c := harness.Locker(t, srv.Addr(), harness.Brief(time.Minute), func(o *redis.Options) { o.PoolSize = 8 })
		for i := range each {
			var options []holdfast.Option
			if i%2 == 0 {
				options = append(options, holdfast.WithStrictOrder())
			}
			m := c.Mutex("n", options...)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(200_000))*time.Microsecond)
				defer cancel()
				lease, err := m.Lock(ctx)
				var ended *holdfast.WaitError
				switch {
				case errors.As(err, &ended) && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrHeld):
					gaveUp.Add(1)
				case err != nil:
					t.Errorf("got %v", err)
				default:
					inside.Enter(t, lease)
					got.Add(1)
					inside.Leave(lease)
					harness.HandBack(t, lease)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	harness.Signalled(t, "all return", done)
	t.Logf("%d got in, %d gave up", got.Load(), gaveUp.Load())
	began := time.Now()
	harness.Release(t, harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n")))
	if took := time.Since(began); harness.Measured() && took > 12*time.Second { // before places that nobody stands at are swept
		t.Errorf("free after %v only", took)
	}
	harness.Gone(t, srv, "n", harness.Patience)
}

// Trap 20b: a waiter that takes its own failure for the release hangs with the lock free.
func TestWaiterAfterFailureDoesNotHang(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const clients, rounds = 8, 150
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range clients {
			m := harness.Locker(t, srv.Addr(), nil).Mutex("n")
			all.Go(func() {
				for range rounds {
					lease, err := m.Lock(context.Background())
					if err != nil {
						t.Errorf("got %v", err)
						return
					}
					_ = lease.Release()
				}
			})
		}
		all.Wait()
	}()
	harness.Signalled(t, "all have had their turns", done)
	harness.Gone(t, srv, "n", harness.Patience)
}

// Trap 43: events about expired keys come late. The next is in at the known expiry of a holder that
// is gone.
func TestWaiterEntersAtExpiry(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	one, other := harness.Locker(t, srv.Addr(), nil), harness.Locker(t, srv.Addr(), nil)
	quickest := harness.Patience
	for round := range 3 {
		name := fmt.Sprint("n", round)
		holder := harness.Lock(t, one.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Second)))
		lease := harness.Lock(t, other.Mutex(name))
		late := time.Since(holder.Until())
		if holder.Err() == nil || late < 0 {
			t.Errorf("in %v after trust ended; Err %v", late, holder.Err())
		}
		harness.Release(t, lease)
		quickest = min(quickest, late)
	}
	if harness.Measured() && quickest > 1500*time.Millisecond { // less than 200 ms where the machine is idle
		t.Errorf("in %v after trust ended, and no sooner", quickest)
	}
}

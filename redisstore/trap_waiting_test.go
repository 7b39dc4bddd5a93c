package redisstore_test

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
)

// Trap 17: a missed message costs the whole lease, or hangs for ever. The subscription is killed while one waits, and the
// lock is given back before it is there again, or at the same time, or after.
func TestSubscriptionKilled(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	one, other := locker(t, srv.Addr(), brief(time.Minute)), locker(t, srv.Addr(), brief(time.Minute))
	var quickest [3]time.Duration
	for round := range 6 {
		name := fmt.Sprint("n", round)
		holder := lock(t, one.Mutex(name))
		next := claim(within(t, patience), other.Mutex(name))
		waiting(t, srv, name, 1)
		eventually(t, "it listens", func() bool { return listening(t, srv) == 1 })
		began := time.Now()
		switch must(t, srv, "CLIENT", "KILL", "TYPE", "pubsub"); round % 3 {
		case 0:
			release(t, holder)
		case 1:
			go func() { _ = holder.Release(context.Background()) }()
		case 2:
			eventually(t, "it listens again", func() bool { return listening(t, srv) == 1 })
			release(t, holder)
		}
		handBack(t, next.got(t))
		quicker(&quickest[round%3], began)
	}
	for way, took := range quickest { // its next sign of life is at least as far
		if took > 4*time.Second {
			t.Errorf("way %d: in after %v", way, took)
		}
	}
}

// quicker keeps the shorter of two times: of several, one at least is not lengthened by a machine that stood still.
func quicker(took *time.Duration, began time.Time) {
	if d := time.Since(began); *took == 0 || d < *took {
		*took = d
	}
}

// Trap 18: a dead waiter at the head blocks the others. One whose process crashed is passed over, and one that cannot be
// told from a living one gets its claim; the next asks when the last holder's time would have been over, as it was told.
func TestDeadWaiter(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(*fault.Proxy){
		"crashed":   func(p *fault.Proxy) { p.Silence(); p.Cut() },
		"half-open": (*fault.Proxy).Silence,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p := proxied(t)
			holder := lock(t, locker(t, srv.Addr(), brief(6*time.Second)).Mutex("n"))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			dead := claim(ctx, locker(t, p.Addr(), &holdfast.Config{ReleaseTimeout: time.Millisecond, Label: "dead"}).Mutex("n"))
			waiting(t, srv, "n", 1)
			eventually(t, "it listens", func() bool { return listening(t, srv) == 1 })
			next := claim(within(t, patience), locker(t, srv.Addr(), brief(time.Minute)).Mutex("n"))
			waiting(t, srv, "n", 2)
			eventually(t, "both listen", func() bool { return listening(t, srv) == 2 })
			die(p)
			if name == "crashed" {
				eventually(t, "the server knows", func() bool { return listening(t, srv) == 1 })
			}
			began := time.Now()
			release(t, holder)
			if value, _ := must(t, srv, "GET", keyOf("n")).(string); name == "crashed" && strings.HasSuffix(value, "dead") {
				t.Error("the dead one was not passed over")
			}
			handBack(t, next.got(t))
			if took := time.Since(began); took > 12*time.Second { // well before the dead one's place is swept
				t.Errorf("in after %v", took)
			}
			cancel()
			signalled(t, "the dead one", dead.done)
		})
	}
}

// Trap 19: order inside one second is lexicographic, and waiting long loses one's place. Here all join within a second.
func TestOrderOfJoining(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const n = 12
	holder, heard := lock(t, locker(t, srv.Addr(), nil).Mutex("n")), spyOn(t, srv)
	var mu sync.Mutex
	var turns []turn
	var all sync.WaitGroup
	for i := range n {
		m := locker(t, srv.Addr(), nil).Mutex("n")
		all.Go(func() {
			lease, err := m.Lock(within(t, patience))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			turns = append(turns, turn{strconv.Itoa(i), lease.Owner(), lease.Token()})
			mu.Unlock()
			handBack(t, lease)
		})
		waiting(t, srv, "n", int64(i+1))
	}
	eventually(t, "all listen", func() bool { return listening(t, srv) == n }) // who does not is passed over
	release(t, holder)
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

// Trap 20: a waiter that gives up at the very moment of its grant keeps the lock from all others. A thousand give up
// around that moment; none is stuck, two are never in, and at the end the lock is free at once.
func TestGivingUpAtTheGrant(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const clients, each = 4, 250
	var all sync.WaitGroup
	var inside room
	var got, gaveUp atomic.Int64
	for range clients {
		c := locker(t, srv.Addr(), brief(time.Minute), func(o *redis.Options) { o.PoolSize = 8 })
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
					inside.enter(t, lease)
					got.Add(1)
					inside.leave(lease)
					handBack(t, lease)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	signalled(t, "all return", done)
	t.Logf("%d got in, %d gave up", got.Load(), gaveUp.Load())
	began := time.Now()
	release(t, lock(t, locker(t, srv.Addr(), nil).Mutex("n")))
	if took := time.Since(began); took > 12*time.Second { // before places that nobody stands at are swept
		t.Errorf("free after %v only", took)
	}
	gone(t, srv, "n", patience)
}

// Trap 20b: a waiter that takes its own failure for the release hangs with the lock free.
func TestNobodyHangs(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	const clients, rounds = 8, 150
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range clients {
			m := locker(t, srv.Addr(), nil).Mutex("n")
			all.Go(func() {
				for range rounds {
					lease, err := m.Lock(context.Background())
					if err != nil {
						t.Errorf("got %v", err)
						return
					}
					_ = lease.Release(context.Background())
				}
			})
		}
		all.Wait()
	}()
	signalled(t, "all have had their turns", done)
	gone(t, srv, "n", patience)
}

// Trap 43: events about expired keys come late. The next is in at the known expiry of a holder that is gone.
func TestTakeOverAtExpiry(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	one, other := locker(t, srv.Addr(), nil), locker(t, srv.Addr(), nil)
	quickest := patience
	for round := range 3 {
		name := fmt.Sprint("n", round)
		holder := lock(t, one.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Second)))
		lease := lock(t, other.Mutex(name))
		late := time.Since(holder.Until())
		if holder.Err() == nil || late < 0 {
			t.Errorf("in %v after trust ended; Err %v", late, holder.Err())
		}
		release(t, lease)
		quickest = min(quickest, late)
	}
	if quickest > 1500*time.Millisecond { // less than 200 ms where the machine is idle
		t.Errorf("in %v after trust ended, and no sooner", quickest)
	}
}

package clock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// Trap 18: a waiter that died is skipped. After three missed asks, 18 s, it has no place any more.
func TestQueueDeadWaiterIsSkipped(t *testing.T) {
	for name, test := range map[string]struct {
		die   func(b *actor)
		after time.Duration // of its death: the release
		max   time.Duration // until the next got in
	}{
		"silent, within its life":        {(*actor).Pause, 10 * time.Second, claimTime + slowAsk},
		"requests lost, after its life":  {func(b *actor) { b.Silence(network.There) }, 20 * time.Second, 0},
		"killed, within its life":        {(*actor).Kill, time.Second, 0},
		"killed, after its life":         {(*actor).Kill, 20 * time.Second, 0},
		"silent, after ten times it all": {(*actor).Pause, 200 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				lease := s.lock(a, "n")
				s.startLock(b, "n")
				second := s.startLock(c, "n")
				sleep(time.Second)
				test.die(b)
				sleep(test.after)
				s.release(lease)
				g := s.awaitBetween(second, time.Now(), 0, test.max)
				sleep(20 * time.Second)
				s.release(g.lease)
				sleep(7 * time.Second)
				if n := s.rdb.Exists(t.Context(), key("n")).Val(); n != 0 {
					t.Errorf("the dead one is still there: %v", s.rdb.ZRange(t.Context(), key("n"), 0, -1).Val())
				}
			})
		})
	}
}

// A group does not pass who waits for one of its names: neither where the name has just become
// free, nor later.
func TestGroupPassesNobody(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		s.lock(a, "n", holdfast.WithTTL(time.Second), holdfast.WithoutRenewal())
		waiter := s.startLock(b, "n")
		sleep(time.Second)
		if left := s.remainingTTL("n"); left > 0 { // it is over, and who waits has not asked yet
			t.Fatalf("held for another %v", left)
		}
		if lease, err := c.All([]string{"m", "n"}).TryLock(t.Context()); err == nil {
			t.Errorf("it passed one who waits, with tokens %v", lease.Tokens())
		}
		if g := s.await(waiter); g.err != nil {
			t.Error(g.err)
		}
	})
}

// A waiter that is dead is evicted while others wait for the name all the time, none of them for
// long. The server forgets the eviction when its time is over.
func TestEvictedIsForgotten(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease := s.lock(a, "n")
		s.startLock(b, "n")
		sleep(time.Second)
		b.Pause()
		info, err := c.Inspect(t.Context(), "n")
		if err != nil || len(info.Queue) != 1 {
			t.Fatalf("the queue is %+v, %v", info.Queue, err)
		}
		if err := c.Evict(t.Context(), "n", info.Queue[0].ID); err != nil {
			t.Fatal(err)
		}
		markers := func() (n int) {
			for _, member := range s.rdb.ZRange(t.Context(), key("n")+":queue", 0, -1).Val() {
				if strings.HasPrefix(member, "e") {
					n++
				}
			}
			return n
		}
		if n := markers(); n != 2 {
			t.Errorf("%d markers", n)
		}
		actors := []*actor{c, a}
		for i := range 40 {
			next := s.startLock(actors[i%2], "n")
			sleep(time.Second)
			began := time.Now()
			s.release(lease)
			g := s.await(next)
			if g.err != nil || g.at.Sub(began) > 0 {
				t.Fatalf("the next got in after %v, %v", g.at.Sub(began), g.err)
			}
			lease = g.lease
		}
		if n := markers(); n != 0 {
			t.Errorf("%d markers are left after 40 s", n)
		}
		s.release(lease)
	})
}

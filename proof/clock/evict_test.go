package clock_test

import (
	"strings"
	"testing"
	"time"
)

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

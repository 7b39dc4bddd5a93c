package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

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

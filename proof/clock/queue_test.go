package clock_test

import (
	"testing"
	"time"

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

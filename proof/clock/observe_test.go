package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Trap 40: where tokens are ahead of the server's clock, a leader is observed once and costs what
// it always costs, and since when it leads does not change while it does.
func TestElectionTokenAheadIsObservedOnce(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, time.Hour} {
		play(t, func(t *testing.T, s *scene) {
			a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
			s.clock.Ahead(ahead)
			s.release(s.lock(a, "n"))
			s.clock.Ahead(0)
			lease, began := s.take(a.Election("n").Campaign), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			leader, err := c.Election("n").Leader(ctx)
			if err != nil || leader.Owner != lease.Owner() {
				t.Errorf("%+v leads, not %s: %v", leader, lease.Owner(), err)
			}
			told := 0
			for seen, err := range b.Election("n").Observe(ctx) {
				switch {
				case errors.Is(err, context.DeadlineExceeded):
				case err != nil, seen != leader:
					t.Errorf("ahead by %v: saw %+v, %v, want %+v", ahead, seen, err, leader)
				default:
					told++
				}
				<-time.After(time.Millisecond) // else a loop on a clock that stands still would hide
			}
			// It may ask once a second: no more than for a leader whose token is not ahead.
			if asks := len(s.commands(b, began)); told != 1 || asks > 60 {
				t.Errorf("ahead by %v: told %d times, with %d commands in a minute", ahead, told, asks)
			}
			s.release(lease)
		})
	}
}

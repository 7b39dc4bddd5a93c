package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Trap 40: where tokens are ahead of the server's clock, a leader is observed once and costs what
// it always costs, and since when it leads does not change while it does.
func TestElectionTokenAheadIsObservedOnce(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"tokens as the clock":   0,
		"tokens an hour ahead":  time.Hour,
		"tokens a second ahead": time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				s.clock.Ahead(step)
				s.release(s.lock(a, "n"))
				s.clock.Ahead(0)
				first := s.take(a.Election("n").Campaign)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var leaders []holdfast.Leader
				ended := make(chan error, 1)
				go func() {
					for leader, err := range b.Election("n").Observe(ctx) {
						if errors.Is(err, holdfast.ErrNoLeader) {
							continue
						}
						if err != nil {
							ended <- err
							return
						}
						if leaders = append(leaders, leader); len(leaders) > 9 {
							ended <- errors.New("it repeats")
							return
						}
						<-time.After(time.Millisecond) // else a loop on a clock that stands still would hide
					}
				}()
				sleep(10 * time.Second)
				leader, err := c.Election("n").Leader(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				sleep(20 * time.Second)
				if again, err := c.Election("n").Leader(t.Context()); err != nil || again != leader {
					t.Errorf("%+v, then %+v, %v", leader, again, err)
				}
				s.release(first)
				second := s.take(a.Election("n").Campaign)
				sleep(time.Minute)
				if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("it ended with %v after %+v", err, leaders)
				}
				if len(leaders) != 2 || leaders[0] != leader || leaders[0].Owner != first.Owner() ||
					leaders[1].Owner != second.Owner() {
					t.Fatalf("saw %+v, want two leaders", leaders)
				}
				if leaders[1].Since.Before(leaders[0].Since) {
					t.Errorf("leads since %v, after one since %v", leaders[1].Since, leaders[0].Since)
				}
				if asks := len(s.commands(b, began)); asks > 60 {
					t.Errorf("it sent %d commands in a minute", asks)
				}
				s.release(second)
			})
		})
	}
}

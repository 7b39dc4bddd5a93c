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
	for name, ahead := range map[string]time.Duration{
		"tokens as the clock":   0,
		"tokens an hour ahead":  time.Hour,
		"tokens a second ahead": time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				s.clock.Ahead(ahead)
				s.release(s.lock(a, "n"))
				s.clock.Ahead(0)
				first := s.take(a.Election("n").Campaign)
				began := time.Now()
				end := observeLeaders(t.Context(), b.Election("n"))
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
				leaders, err := end()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("it ended with %v after %+v", err, leaders)
				}
				if len(leaders) != 2 {
					t.Fatalf("saw %+v, want two leaders", leaders)
				}
				if leaders[0] != leader || leader.Owner != first.Owner() {
					t.Fatalf("saw %+v first, want %+v of %s", leaders[0], leader, first.Owner())
				}
				if leaders[1].Owner != second.Owner() {
					t.Fatalf("saw %+v second, want %s", leaders[1], second.Owner())
				}
				if leaders[1].Since.Before(leaders[0].Since) {
					t.Errorf("leads since %v, after one since %v", leaders[1].Since, leaders[0].Since)
				}
				// It may ask once a second: no more than for a leader whose token is not ahead.
				if asks := len(s.commands(b, began)); asks > 60 {
					t.Errorf("it sent %d commands in a minute", asks)
				}
				s.release(second)
			})
		})
	}
}

// observeLeaders observes an election for a minute, in a goroutine. Function end waits until that
// is over, and returns the leaders and the error that ended it.
func observeLeaders(ctx context.Context, election *holdfast.Election) (end func() ([]holdfast.Leader, error)) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	var leaders []holdfast.Leader
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		var last error
		for leader, err := range election.Observe(ctx) {
			last = err
			if errors.Is(err, holdfast.ErrNoLeader) {
				continue
			}
			if err != nil {
				break
			}
			leaders = append(leaders, leader)
			if len(leaders) > 9 {
				last = errors.New("it repeats")
				break
			}
			<-time.After(time.Millisecond) // else a loop on a clock that stands still would hide
		}
		ended <- last
	}()
	return func() ([]holdfast.Leader, error) { err := <-ended; return leaders, err }
}

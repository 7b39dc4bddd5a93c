package clock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Trap 11: a release whose answer is lost is uncertain, never "not held"; whoever came next keeps
// what it has.
func TestLeaseReleaseAnswerLostIsNeverNotHeld(t *testing.T) {
	for name, test := range map[string]struct {
		lose    func(*scene, *actor)
		timeout time.Duration
		max     time.Duration
		want    error
		freed   bool // at the server, at once
	}{
		"answer":           {func(s *scene, a *actor) { a.lose(back, ":1\r\n", 1) }, 0, 1200 * time.Millisecond, holdfast.ErrUncertain, true},
		"request":          {func(s *scene, a *actor) { a.lose(there, s.script("free"), 1) }, 0, 1200 * time.Millisecond, nil, false},
		"all answers":      {func(s *scene, a *actor) { a.silence(back) }, 0, 5 * time.Second, holdfast.ErrUncertain, true},
		"all":              {func(s *scene, a *actor) { a.silence() }, 0, 5 * time.Second, holdfast.ErrUncertain, false},
		"a short patience": {func(s *scene, a *actor) { a.silence() }, 50 * time.Millisecond, 50 * time.Millisecond, holdfast.ErrUncertain, false},
	} {
		for kind, waiting := range map[string]bool{"alone": false, "while others wait": true} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a, b := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = test.timeout }), s.actor("b")
					lease := s.lock(a, "n")
					var waiter <-chan got
					if waiting {
						waiter = s.wait(b, "n")
					}
					pass(3 * time.Second)
					released := time.Now()
					test.lose(s, a)
					err := lease.Release()
					if took := time.Since(released); !errors.Is(err, test.want) || took > test.max {
						t.Errorf("got %v after %v", err, took)
					}
					if errors.Is(err, holdfast.ErrNotHeld) || errors.Is(err, holdfast.ErrLost) {
						t.Errorf("got %v", err)
					}
					if err := lease.Release(); !errors.Is(err, holdfast.ErrNotHeld) {
						t.Errorf("second release: %v", err)
					}
					if !waiting {
						waiter = s.wait(b, "n")
					}
					next := s.take(waiter)
					if waiting && test.freed && !next.at.Equal(released) {
						t.Errorf("the next got in after %v", next.at.Sub(released))
					}
					a.resume()
					pass(time.Minute)
					if err := next.lease.Err(); err != nil {
						t.Errorf("the next lost it: %v", err)
					}
				})
			})
		}
	}
}

// A release that is uncertain is followed up: as soon as the server answers again the lock is free,
// long before its TTL.
func TestLeaseReleaseUncertainIsFollowedUp(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = 100 * time.Millisecond })
		lease := s.lock(a, "n", holdfast.WithTTL(time.Minute))
		a.silence(there)
		if err := lease.Release(); !errors.Is(err, holdfast.ErrUncertain) {
			t.Fatalf("got %v", err)
		}
		a.kill() // what is under way is lost
		pass(time.Second)
		a.resume()
		pass(2 * time.Second)
		if left := s.left("n"); left > 0 {
			t.Errorf("it is held for another %v", left)
		}
	})
}

package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// atItsEnd fails unless a waiter gets in when a min hold is over.
func (s *scene) atItsEnd(waiter <-chan got, began time.Time, hold time.Duration) {
	s.t.Helper()
	s.awaitBetween(waiter, began, hold-time.Millisecond, hold+10*time.Millisecond)
}

// The first in the queue is told when a min hold is over. If it gives up meanwhile, the next is
// told.
func TestMinHoldFirstLeavesNextIsTold(t *testing.T) {
	const hold = 4 * time.Second
	for name, test := range map[string]struct {
		hold, wait func(a *actor, options ...holdfast.Option) lockFunc
	}{
		"mutex":   {mutexes, mutexes},
		"readers": {readers, writers},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				lease, began := s.acquire(test.hold(a, holdfast.WithMinHold(hold))), time.Now()
				ctx, leave := context.WithCancel(t.Context())
				for range 2 {
					s.start(ctx, test.wait(b))
					sleep(100 * time.Millisecond)
				}
				next := s.start(t.Context(), test.wait(c))
				sleep(time.Second)
				s.release(lease)
				sleep(time.Second)
				leave()
				s.atItsEnd(next, began, hold)
			})
		})
	}
}

// A waiter that becomes the first in the queue while a min hold still keeps a permit is told when
// that is over, also if others hold.
func TestMinHoldNewFirstIsTold(t *testing.T) {
	const hold = 4 * time.Second
	for name, test := range map[string]struct {
		permits  int64
		others   int // of the permits, held for long
		weight   int64
		releases bool // another holder, so that the first gets in; else that gives up
	}{
		"the first got in by a release": {2, 0, 1, true},
		"and others hold for shorter":   {3, 1, 1, true},
		"the first gave up":             {3, 1, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c, d := s.actor("a"), s.actor("b"), s.actor("c"), s.actor("d")
				permits := func(a *actor, weight int64, options ...holdfast.Option) lockFunc {
					return func(ctx context.Context) (*holdfast.Lease, error) {
						return a.Semaphore("n", test.permits, options...).Acquire(ctx, weight)
					}
				}
				kept := s.take(permits(a, 1, holdfast.WithMinHold(hold)))
				began := time.Now()
				other := s.take(permits(a, 1, holdfast.WithTTL(time.Minute)))
				for range test.others {
					s.take(permits(d, 1, holdfast.WithTTL(3*time.Second)))
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				s.start(ctx, permits(b, test.weight))
				sleep(10 * time.Millisecond)
				second := s.start(t.Context(), permits(c, 1))
				sleep(10 * time.Millisecond)
				s.release(kept)
				sleep(500 * time.Millisecond)
				if test.releases {
					s.release(other)
				} else {
					leave()
				}
				s.atItsEnd(second, began, hold)
			})
		})
	}
}

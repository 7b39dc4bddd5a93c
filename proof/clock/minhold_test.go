package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A min hold lets Release return at once and keeps others out until it is over, also after a crash
// of the holder.
func TestLeaseMinHoldKeepsOthersOut(t *testing.T) {
	const hold = 4 * time.Second
	for name, test := range map[string]struct {
		ttl     time.Duration
		options []holdfast.Option
		handed  bool
		waiting bool
		end     func(*scene, *actor, *holdfast.Lease)
		after   time.Duration // of the grant: that end
		min     time.Duration // after the grant: the next gets in
		max     time.Duration
	}{
		"released early, others wait": {15 * time.Second, nil, false, true, released, time.Second, hold, hold},
		"released early, alone":       {15 * time.Second, nil, false, false, released, time.Second, hold, hold},
		"released late":               {15 * time.Second, nil, false, true, released, 6 * time.Second, 6 * time.Second, 6 * time.Second},
		"a TTL below it":              {time.Second, nil, false, true, released, 500 * time.Millisecond, hold, hold},
		"crashed, a TTL below it":     {time.Second, nil, false, true, silenced, 100 * time.Millisecond, hold, hold},
		"crashed after a renewal":     {time.Second, nil, false, true, silenced, 3900 * time.Millisecond, hold, 5 * time.Second},
		"crashed, alone":              {time.Second, nil, false, false, silenced, 2 * time.Second, hold, hold},
		"fixed":                       {time.Second, []holdfast.Option{holdfast.WithoutRenewal()}, false, true, released, 500 * time.Millisecond, hold, hold},
		"fixed, runs out":             {time.Second, []holdfast.Option{holdfast.WithoutRenewal()}, false, true, nothing, 0, hold, hold},
		"as long as the max hold":     {time.Second, []holdfast.Option{holdfast.WithMaxHold(hold)}, false, true, nothing, 0, hold, hold},
		"handed over, released":       {15 * time.Second, nil, true, true, released, time.Second, hold, hold},
		"handed over, crashed":        {time.Second, nil, true, true, silenced, 0, hold, hold},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c, d := s.actor("a"), s.actor("b"), s.actor("c"), s.actor("d")
				options := append([]holdfast.Option{holdfast.WithTTL(test.ttl), holdfast.WithMinHold(hold)}, test.options...)
				var lease *holdfast.Lease
				if test.handed {
					first := s.lock(c, "n")
					mine := s.wait(a, "n", options...)
					pass(time.Second)
					s.release(first)
					lease = s.take(mine).lease
				} else {
					lease = s.lock(a, "n", options...)
				}
				began := time.Now()
				var waiter <-chan got
				if test.waiting {
					waiter = s.wait(b, "n")
				}
				pass(test.after)
				test.end(s, a, lease)
				if took := time.Since(began) - test.after; took != 0 {
					t.Errorf("the release took %v", took)
				}
				if _, err := d.Mutex("n").TryLock(t.Context()); test.after < hold && !errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("TryLock: %v", err)
				}
				if !test.waiting {
					waiter = s.wait(b, "n")
				}
				g := s.take(waiter)
				if in := g.at.Sub(began); g.err != nil || in < test.min-time.Millisecond || in > test.max+10*time.Millisecond {
					t.Errorf("the next got in after %v, %v; want %v to %v", in, g.err, test.min, test.max)
				}
				pass(time.Minute)
				if err := g.lease.Err(); err != nil {
					t.Errorf("the next lost it: %v", err)
				}
			})
		})
	}
}

// The first in the queue is told when a min hold is over. If it gives up meanwhile, the next is
// told.
func TestMinHoldFirstLeavesNextIsTold(t *testing.T) {
	const hold = 4 * time.Second
	for name, share := range map[string]bool{"mutex": false, "readers": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				acquire := func(a *actor) func(context.Context) (*holdfast.Lease, error) {
					if share {
						return a.RWMutex("n").Lock
					}
					return a.Mutex("n").Lock
				}
				var lease *holdfast.Lease
				var err error
				if share {
					lease, err = a.RWMutex("n", holdfast.WithMinHold(hold)).RLock(t.Context())
				} else {
					lease, err = a.Mutex("n", holdfast.WithMinHold(hold)).Lock(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				ctx, leave := context.WithCancel(t.Context())
				for _, wait := range []func(){func() { _, _ = acquire(b)(ctx) }, func() { _, _ = acquire(b)(ctx) }} {
					go wait()
					pass(100 * time.Millisecond)
				}
				done := make(chan got, 1)
				go func() {
					lease, err := acquire(c)(t.Context())
					done <- got{lease, err, time.Now()}
				}()
				pass(time.Second)
				s.release(lease)
				pass(time.Second)
				leave()
				if g := <-done; g.err != nil || g.at.Sub(began) < hold-time.Millisecond || g.at.Sub(began) > hold+10*time.Millisecond {
					t.Errorf("the next got in after %v, %v", g.at.Sub(began), g.err)
				}
			})
		})
	}
}

// A waiter that becomes the first in the queue while a min hold still keeps a permit is told when
// that is over, also if others hold.
func TestMinHoldNewFirstIsTold(t *testing.T) {
	const hold = 4 * time.Second
	for name, test := range map[string]struct {
		permits int64
		others  int // of the permits, held for long
		weight  int64
		next    func(s *scene, other *holdfast.Lease, waits context.CancelFunc)
	}{
		"the first got in by a release": {2, 0, 1, func(s *scene, other *holdfast.Lease, _ context.CancelFunc) { s.release(other) }},
		"and others hold for shorter":   {3, 1, 1, func(s *scene, other *holdfast.Lease, _ context.CancelFunc) { s.release(other) }},
		"the first gave up":             {3, 1, 2, func(_ *scene, _ *holdfast.Lease, leave context.CancelFunc) { leave() }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c, d := s.actor("a"), s.actor("b"), s.actor("c"), s.actor("d")
				take := func(a *actor, options ...holdfast.Option) *holdfast.Lease {
					t.Helper()
					lease, err := a.Semaphore("n", test.permits, options...).Acquire(t.Context(), 1)
					if err != nil {
						t.Fatal(err)
					}
					s.held = append(s.held, lease)
					return lease
				}
				kept := take(a, holdfast.WithMinHold(hold))
				began := time.Now()
				other := take(a, holdfast.WithTTL(time.Minute))
				for range test.others {
					take(d, holdfast.WithTTL(3*time.Second))
				}
				wait := func(ctx context.Context, a *actor, weight int64) <-chan got {
					done := make(chan got, 1)
					go func() {
						lease, err := a.Semaphore("n", test.permits).Acquire(ctx, weight)
						done <- got{lease, err, time.Now()}
					}()
					pass(10 * time.Millisecond)
					return done
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				wait(ctx, b, test.weight)
				second := wait(t.Context(), c, 1)
				s.release(kept)
				pass(500 * time.Millisecond)
				test.next(s, other, leave)
				if g := <-second; g.err != nil || g.at.Sub(began) < hold-time.Millisecond || g.at.Sub(began) > hold+10*time.Millisecond {
					t.Errorf("the next got in after %v, %v", g.at.Sub(began), g.err)
				}
			})
		})
	}
}

// A first waiter that crashed cannot be told when a min hold is over. The next that hears is told,
// and passes it.
func TestMinHoldFirstCrashedNextIsTold(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const hold = 3 * time.Second // over before a waiter asks by itself
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease := s.lock(a, "n", holdfast.WithTTL(time.Minute), holdfast.WithMinHold(hold))
		began := time.Now()
		s.wait(b, "n")
		waiter := s.wait(c, "n")
		pass(time.Second)
		b.kill()
		s.release(lease)
		if g := s.take(waiter); g.err != nil || g.at.Sub(began) < hold-time.Millisecond || g.at.Sub(began) > hold+10*time.Millisecond {
			t.Errorf("the next got in after %v, %v", g.at.Sub(began), g.err)
		}
	})
}

func released(s *scene, _ *actor, lease *holdfast.Lease) { s.t.Helper(); s.release(lease) }

func silenced(_ *scene, a *actor, _ *holdfast.Lease) { a.silence() }

func nothing(*scene, *actor, *holdfast.Lease) {}

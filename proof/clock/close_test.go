package clock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// Release takes no longer than the smaller of the remaining trust and ReleaseTimeout, although ctx
// is over (trap 13).
func TestLeaseReleaseEndsInTime(t *testing.T) {
	for name, test := range map[string]struct {
		ttl, timeout, held time.Duration
		silent             time.Duration // before the release
		max                time.Duration
	}{
		"ReleaseTimeout":                   {15 * time.Second, 0, time.Second, 0, 5 * time.Second},
		"trust":                            {3 * time.Second, 0, 2500 * time.Millisecond, 0, 2965*time.Millisecond - 500*time.Millisecond},
		"trust, the shortest":              {100 * time.Millisecond, 0, 10 * time.Millisecond, 0, 84 * time.Millisecond},
		"trust, much of it gone":           {15 * time.Second, time.Minute, 14 * time.Second, 14 * time.Second, 845 * time.Millisecond},
		"a short one":                      {15 * time.Second, 50 * time.Millisecond, time.Second, 0, 50 * time.Millisecond},
		"a short one, a renewal under way": {15 * time.Second, 50 * time.Millisecond, 5500 * time.Millisecond, time.Second, 50 * time.Millisecond},
		"a renewal that fails for long":    {15 * time.Second, 50 * time.Millisecond, 9 * time.Second, 6 * time.Second, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = test.timeout })
				lease := s.lock(a, "n", holdfast.WithTTL(test.ttl))
				pass(test.held - test.silent)
				a.silence()
				pass(test.silent)
				began := time.Now()
				err := lease.Release()
				if took := time.Since(began); took > test.max || took < test.max/2 {
					t.Errorf("took %v, want %v", took, test.max)
				}
				if !errors.Is(err, holdfast.ErrUncertain) {
					t.Errorf("got %v", err)
				}
				if err := context.Cause(leased.Context(lease)); !errors.Is(err, context.Canceled) {
					t.Errorf("the context ended with %v", err)
				}
			})
		})
	}
	t.Run("others' requests hang", func(t *testing.T) {
		play(t, func(t *testing.T, s *scene) {
			a := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = 50 * time.Millisecond })
			lease := s.lock(a, "n")
			a.silence()
			for i := range 20 {
				s.wait(a, fmt.Sprint(i))
			}
			began := time.Now()
			if err := lease.Release(); !errors.Is(err, holdfast.ErrUncertain) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > 50*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	})
}

// Close gives all leases back together within ReleaseTimeout, and their contexts end at once.
func TestClientCloseEndsInTime(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration
		ttl     time.Duration
		silent  bool
		max     time.Duration
	}{
		"well":             {0, 15 * time.Second, false, 0},
		"silent":           {0, 15 * time.Second, true, 5 * time.Second},
		"silent, short":    {100 * time.Millisecond, 15 * time.Second, true, 100 * time.Millisecond},
		"silent, more TTL": {time.Minute, time.Second, true, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = test.timeout }), s.actor("b")
				s.lock(b, "theirs")
				var leases []*holdfast.Lease
				for i := range 20 {
					leases = append(leases, s.lock(a, fmt.Sprint(i), holdfast.WithTTL(test.ttl)))
					<-time.After(time.Millisecond)
				}
				waiter := s.wait(a, "theirs")
				pass(100 * time.Millisecond)
				if test.silent {
					a.silence()
				}
				began := time.Now()
				closed := make(chan error, 1)
				go func() { closed <- a.Close() }()
				for _, lease := range leases {
					<-lease.Done()
					if err := context.Cause(leased.Context(lease)); !errors.Is(err, holdfast.ErrClosed) {
						t.Errorf("a context ended with %v", err)
					}
				}
				if g := s.take(waiter); !errors.Is(g.err, holdfast.ErrClosed) {
					t.Errorf("who waited got %v", g.err)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("told after %v", took)
				}
				err := <-closed
				if took := time.Since(began); took > test.max {
					t.Errorf("took %v", took)
				}
				if test.silent != errors.Is(err, holdfast.ErrUncertain) {
					t.Errorf("got %v", err)
				}
				if n := s.rdb.Exists(context.Background(), key("0")).Val(); !test.silent && n != 0 {
					t.Error("still held")
				}
			})
		})
	}
}

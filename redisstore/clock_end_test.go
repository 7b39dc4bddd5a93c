package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Waiting ends when its ctx does, to the nanosecond, whatever the network does (traps 20, 22).
func TestClockWaitEnds(t *testing.T) {
	for name, test := range map[string]struct {
		silent  time.Duration // after the beginning; negative: never
		options []holdfast.Option
		answers bool // some came
	}{
		"waiting in line":           {-1, nil, true},
		"in strict order":           {-1, []holdfast.Option{holdfast.WithStrictOrder()}, true},
		"polling":                   {-1, []holdfast.Option{holdfast.WithPolling(7*time.Millisecond, 0)}, true},
		"silent from the beginning": {0, nil, false},
		"silent, polling":           {0, []holdfast.Option{holdfast.WithPolling(7*time.Millisecond, 0)}, false},
		"silent after a while":      {time.Second, nil, true},
	} {
		for kind, want := range map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a, b, began := s.actor("a"), s.actor("b"), time.Now()
					s.lock(a, "n")
					const limit = 13*time.Second + 1
					ctx, cancel := withCancel(t)
					if want == context.DeadlineExceeded {
						ctx, cancel = context.WithTimeout(ctx, limit)
						defer cancel()
					} else {
						time.AfterFunc(limit, cancel)
					}
					if test.silent == 0 {
						b.silence()
					}
					waiter := s.waitFor(ctx, b, "n", test.options...)
					if test.silent > 0 {
						pass(test.silent)
						b.silence()
					}
					g := s.take(waiter)
					var wait *holdfast.WaitError
					if !errors.Is(g.err, want) || !errors.As(g.err, &wait) || errors.Is(g.err, holdfast.ErrHeld) {
						t.Errorf("got %v", g.err)
					} else if wait.Waited != limit || test.answers && wait.Holder != "a" {
						t.Errorf("got %+v", wait)
					}
					if errors.Is(g.err, holdfast.ErrUnavailable) == test.answers && test.silent < 0 {
						t.Errorf("got %v", g.err)
					}
					if took := g.at.Sub(began); took != limit {
						t.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

// TryLock on a silent network takes no longer than one request may.
func TestClockTryEnds(t *testing.T) {
	for _, ttl := range []time.Duration{120 * time.Millisecond, 3 * time.Second, time.Minute} {
		for name, known := range map[string]bool{"first": false, "later": true} {
			t.Run(fmt.Sprint(ttl, "/", name), func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a := s.actor("a")
					if known {
						s.release(s.lock(a, "other"))
					}
					a.silence()
					for range 3 { // the connection at hand first, then new ones
						began := time.Now()
						_, err := a.Mutex("n", holdfast.WithTTL(ttl)).TryLock(t.Context())
						if took, want := time.Since(began), min(ttl/6, time.Second); took > want || !errors.Is(err, holdfast.ErrUnavailable) {
							t.Errorf("%v after %v, want %v", err, took, want)
						}
					}
				})
			})
		}
	}
}

// Release takes no longer than the smaller of the remaining trust and ReleaseTimeout, although ctx is over (trap 13).
func TestClockReleaseEnds(t *testing.T) {
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
				ctx, cancel := withCancel(t)
				cancel()
				began := time.Now()
				err := lease.Release(ctx)
				if took := time.Since(began); took > test.max || took < test.max/2 {
					t.Errorf("took %v, want %v", took, test.max)
				}
				if !errors.Is(err, holdfast.ErrUncertain) {
					t.Errorf("got %v", err)
				}
				if err := context.Cause(lease.Context()); !errors.Is(err, context.Canceled) {
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
			if err := lease.Release(t.Context()); !errors.Is(err, holdfast.ErrUncertain) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > 50*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	})
}

// Close gives all leases back together within ReleaseTimeout, and their contexts end at once.
func TestClockCloseEnds(t *testing.T) {
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
					if err := context.Cause(lease.Context()); err != holdfast.ErrClosed {
						t.Errorf("a context ended with %v", err)
					}
				}
				if g := s.take(waiter); g.err != holdfast.ErrClosed {
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

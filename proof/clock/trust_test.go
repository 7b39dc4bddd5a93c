package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// margin is that of the design.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

// lost waits for the end of a lease, checks that it was lost, and why, and returns when.
func lost(t *testing.T, lease *holdfast.Lease, reason holdfast.Reason) time.Time {
	t.Helper()
	select {
	case <-lease.Done():
	case <-time.After(time.Hour):
		t.Fatal("not lost within an hour")
	}
	var why *holdfast.LostError
	if err := context.Cause(leased.Context(lease)); !errors.As(err, &why) || !errors.Is(err, holdfast.ErrLost) || why.Reason != reason {
		t.Errorf("lost with %v, want %q", err, reason)
	}
	if err := lease.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Err is %v", err)
	}
	if until := lease.Until(); until.After(time.Now()) {
		t.Errorf("lost, and trusted for another %v", time.Until(until))
	}
	return time.Now()
}

// Trap 1: with a silent network the context ends at sent + TTL - margin, to the nanosecond, while
// the key is still there, and before the next can be let in.
func TestLeaseTrustEndsMarginEarly(t *testing.T) {
	for name, test := range map[string]struct {
		ttl   time.Duration
		after time.Duration // of the grant: when the network falls silent
		ways  []way
		sent  time.Duration // the last confirmed request
	}{
		"at once":                   {15 * time.Second, 0, nil, 0},
		"before the first renewal":  {15 * time.Second, 4999 * time.Millisecond, nil, 0},
		"after the third renewal":   {15 * time.Second, 15500 * time.Millisecond, nil, 15 * time.Second},
		"requests do not arrive":    {15 * time.Second, 6 * time.Second, []way{there}, 5 * time.Second},
		"answers do not arrive":     {15 * time.Second, 6 * time.Second, []way{back}, 5 * time.Second},
		"the shortest TTL":          {100 * time.Millisecond, 0, nil, 0},
		"a short TTL, answers lost": {time.Second, 0, []way{back}, 0},
		"a long TTL":                {5 * time.Minute, 101 * time.Second, nil, 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				granted := time.Now()
				lease := s.lock(a, "n", holdfast.WithTTL(test.ttl))
				waiter := s.wait(b, "n", holdfast.WithTTL(test.ttl))
				pass(test.after)
				a.silence(test.ways...)
				want := granted.Add(test.sent + test.ttl - margin(test.ttl))
				if got := lease.Until(); !got.Equal(want) {
					t.Errorf("trusted for %v, want %v", got.Sub(granted), want.Sub(granted))
				}
				until(want.Add(-1))
				if err := lease.Err(); err != nil {
					t.Errorf("a nanosecond too early: %v", err)
				}
				if end := lost(t, lease, holdfast.LossExpired); !end.Equal(want) {
					t.Errorf("ended after %v, want %v", end.Sub(granted), want.Sub(granted))
				}
				if left := s.left("n"); left < margin(test.ttl)-time.Millisecond {
					t.Errorf("told when the key had %v left", left)
				}
				if next := s.take(waiter); next.err != nil || next.at.Before(want.Add(margin(test.ttl))) {
					t.Errorf("the next got in %v after the end, %v", next.at.Sub(want), next.err)
				}
				if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("released after loss: %v", err)
				}
			})
		})
	}
}

// An answer that comes late gives trust from the sending, never from its coming.
func TestLeaseSlowAnswerShortensTrust(t *testing.T) {
	for name, test := range map[string]struct{ ttl, delay time.Duration }{
		"at once":         {15 * time.Second, 0},
		"a tenth":         {15 * time.Second, 100 * time.Millisecond},
		"almost too late": {15 * time.Second, 999 * time.Millisecond},
		"short TTL":       {100 * time.Millisecond, 15 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a := s.actor("a")
				s.release(s.lock(a, "other")) // so that the clock is known
				pass(time.Second)
				if test.delay > 0 {
					a.slow(there, s.script("ask"), 1, test.delay/3)
					a.slow(back, granted, 1, test.delay-test.delay/3)
				}
				sent := time.Now()
				lease := s.lock(a, "n", holdfast.WithTTL(test.ttl), holdfast.WithoutRenewal())
				if took := time.Since(sent); took != test.delay {
					t.Errorf("took %v", took)
				}
				want := sent.Add(test.ttl - margin(test.ttl))
				if got := lease.Until(); !got.Equal(want) {
					t.Errorf("trusted for %v, want %v", got.Sub(sent), want.Sub(sent))
				}
				if end := lost(t, lease, holdfast.LossExpired); !end.Equal(want) {
					t.Errorf("ended after %v, want %v", end.Sub(sent), want.Sub(sent))
				}
			})
		})
	}
}

package clock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A fixed lease ends a TTL after it was asked for, less the margin, however it was granted, and is
// not renewed.
func TestLeaseFixedEndsWithItsTTL(t *testing.T) {
	for name, handed := range map[string]bool{"asked for": false, "handed over": true} {
		for _, ttl := range []time.Duration{100 * time.Millisecond, 15 * time.Second} {
			t.Run(name+"/"+ttl.String(), func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a, b, began := s.actor("a"), s.actor("b"), time.Now()
					options := []holdfast.Option{holdfast.WithTTL(ttl), holdfast.WithoutRenewal()}
					var lease *holdfast.Lease
					if handed {
						first := s.lock(b, "n")
						mine := s.wait(a, "n", options...)
						pass(time.Second)
						s.release(first)
						began = time.Now()
						lease = s.take(mine).lease
					} else {
						lease = s.lock(a, "n", options...)
					}
					end := lost(t, lease, holdfast.LossExpired)
					if got, want := end.Sub(began), ttl-margin(ttl); got != want {
						t.Errorf("ended after %v, want %v", got, want)
					}
					if n := len(s.seen(a, began, "renew")); n != 0 {
						t.Errorf("%d renewals", n)
					}
				})
			})
		}
	}
}

// Polling asks every interval, exactly so many times; a handle remembers nothing of it (trap 31).
func TestMutexPollingAsksEveryInterval(t *testing.T) {
	for name, test := range map[string]struct {
		interval time.Duration
		attempts int
	}{"five": {100 * time.Millisecond, 5}, "one": {time.Hour, 1}, "fast": {time.Millisecond, 100}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				s.lock(a, "n")
				m := b.Mutex("n", holdfast.WithPolling(test.interval, test.attempts))
				for range 2 {
					began := time.Now()
					_, err := m.Lock(t.Context())
					if took, want := time.Since(began), time.Duration(test.attempts-1)*test.interval; !errors.Is(err, holdfast.ErrHeld) || took != want {
						t.Errorf("%v after %v, want %v", err, took, want)
					}
					asks := s.seen(b, began, "ask")
					if len(asks) != test.attempts {
						t.Errorf("asked %d times", len(asks))
					}
					for i, ask := range asks {
						if want := began.Add(time.Duration(i) * test.interval); !ask.at.Equal(want) {
							t.Errorf("attempt %d came at %v", i, ask.at.Sub(began))
						}
					}
					pass(time.Second)
				}
				if kind := s.rdb.Type(t.Context(), key("n")).Val(); kind != "string" {
					t.Errorf("it stood in the queue: a %s", kind)
				}
			})
		})
	}
	t.Run("gets in", func(t *testing.T) {
		play(t, func(t *testing.T, s *scene) {
			a, b, began := s.actor("a"), s.actor("b"), time.Now()
			lease := s.lock(a, "n")
			waiter := s.wait(b, "n", holdfast.WithPolling(70*time.Millisecond, 0))
			pass(time.Second)
			s.release(lease)
			if g := s.take(waiter); g.err != nil || g.at.Sub(began) != 1050*time.Millisecond {
				t.Errorf("got in after %v, %v", g.at.Sub(began), g.err)
			}
		})
	})
}

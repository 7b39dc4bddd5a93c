package clock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// slowAsk bounds the pause between two asks of a waiter; claimTime is how long a hand-over waits to
// be taken up.
const (
	slowAsk   = 6 * time.Second
	claimTime = 500 * time.Millisecond
	message   = "\r\nmessage\r\n" // is in every message
)

// Trap 18: a hand-over that nobody takes up falls to the next after the claim: whoever is silent
// loses it.
func TestHandOverNotTakenUpFallsToNext(t *testing.T) {
	for name, test := range map[string]struct {
		silent func(b *actor)
		ttl    time.Duration
		min    time.Duration // after the release: when the next may get in, and must
		max    time.Duration
	}{
		"silent":         {func(b *actor) { b.silence() }, 15 * time.Second, claimTime, claimTime + slowAsk},
		"silent, 1 s":    {func(b *actor) { b.silence() }, time.Second, time.Second / 3, 2 * time.Second},
		"silent, 100 ms": {func(b *actor) { b.silence() }, 100 * time.Millisecond, 33 * time.Millisecond, 200 * time.Millisecond},
		"hears nothing":  {func(b *actor) { b.silence(back) }, 15 * time.Second, claimTime, claimTime + slowAsk},
		"killed":         {func(b *actor) { b.kill() }, 15 * time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				ttl := holdfast.WithTTL(test.ttl)
				lease := s.lock(a, "n", ttl)
				first, second := s.wait(b, "n", ttl), s.wait(c, "n", ttl)
				pass(min(test.ttl/5, 3*time.Second))
				test.silent(b)
				s.release(lease)
				released := time.Now()
				next := s.take(second)
				if took := next.at.Sub(released); next.err != nil || took < test.min || took > test.max {
					t.Errorf("the next got in after %v, %v; want %v to %v", took, next.err, test.min, test.max)
				}
				pass(10 * time.Second)
				b.resume() // and all that was said to it meanwhile arrives
				pass(10 * time.Second)
				select {
				case g := <-first:
					t.Fatalf("the silent one got in as well: %v", g.err)
				default:
				}
				s.release(next.lease)
				released = time.Now()
				if g := s.take(first); g.err != nil || g.at.Sub(released) > slowAsk {
					t.Errorf("after its return the silent one got in after %v, %v", g.at.Sub(released), g.err)
				}
			})
		})
	}
}

// Trap 18: the hosts of the first waiters fall silent. The next is in after its first ask, at most
// 6 s later, and a claim for each of them.
func TestQueueSilentHeadsDelayNextByClaims(t *testing.T) {
	for after := range 8 {
		play(t, func(t *testing.T, s *scene) {
			const silent, place = 5, 20 * time.Millisecond
			lease := s.lock(s.actor("a"), "n")
			var heads []*actor
			for i := range silent {
				heads = append(heads, s.actor("head"+string(rune('a'+i))))
				s.wait(heads[i], "n")
			}
			next := s.wait(s.actor("next"), "n")
			pass(time.Duration(after) * 700 * time.Millisecond)
			for _, head := range heads {
				head.silence()
			}
			s.release(lease)
			released := time.Now()
			const limit = slowAsk + silent*(claimTime+silent*place)
			if g := s.take(next); g.err != nil || g.at.Sub(released) < claimTime || g.at.Sub(released) > limit {
				t.Errorf("the next got in after %v, %v; want at most %v", g.at.Sub(released), g.err, limit)
			}
		})
	}
}

// Trap 4: a message of a hand-over that comes after the claim is no lease; one that comes in time
// is confirmed first where less than half of the claim is left.
func TestHandOverLateMessageIsNoLease(t *testing.T) {
	for name, test := range map[string]struct {
		delay time.Duration
		next  bool // another waits, and has it by then
		asks  int  // of the waiter after the release, before it holds
		in    time.Duration
	}{
		"at once":             {0, false, 0, 0},
		"early in the claim":  {200 * time.Millisecond, false, 0, 200 * time.Millisecond},
		"late in the claim":   {400 * time.Millisecond, false, 1, 400 * time.Millisecond},
		"after the claim":     {700 * time.Millisecond, false, 1, 700 * time.Millisecond},
		"after the next came": {20 * time.Second, true, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				lease := s.lock(a, "n")
				waiter := s.wait(b, "n")
				pass(time.Second)
				b.slow(back, message, 1, test.delay+1)
				if test.next {
					b.slow(there, s.script("ask"), 1, 10*time.Second)
				}
				s.release(lease)
				released := time.Now()
				var other got
				if test.next {
					other = s.take(s.wait(c, "n"))
					pass(30 * time.Second)
					if err := other.lease.Err(); err != nil {
						t.Errorf("the next lost it: %v", err)
					}
					s.release(other.lease)
					released = time.Now()
				}
				g := s.take(waiter)
				if g.err != nil {
					t.Fatal(g.err)
				}
				if took := g.at.Sub(released).Truncate(time.Microsecond); took != test.in {
					t.Errorf("got in after %v", took)
				}
				if n := len(s.seen(b, released, "ask")); test.asks >= 0 && n != test.asks {
					t.Errorf("asked %d times", n)
				}
				if until := g.lease.Until(); test.asks == 0 && until.After(released.Add(15*time.Second+test.delay+1-margin(15*time.Second))) {
					t.Errorf("trusted for %v", until.Sub(released))
				}
				pass(time.Minute)
				if err := g.lease.Err(); err != nil {
					t.Errorf("lost: %v", err)
				}
			})
		})
	}
}

// Trap 4: a hand-over whose first renewal never arrives is trusted for the claim alone, less the
// margin and the drift, and counted from the hand-over, not from its message.
func TestHandOverNotRenewedIsTrustedForClaim(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "message delayed": 150 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease := s.lock(a, "n")
				waiter := s.wait(b, "n")
				pass(time.Second)
				b.slow(back, message, 1, delay+1)
				b.silence(there)
				s.release(lease)
				released := time.Now()
				g := s.take(waiter)
				if g.err != nil {
					t.Fatal(g.err)
				}
				end := lost(t, g.lease, holdfast.LossExpired)
				if took := end.Sub(released); took > claimTime-margin(claimTime) || took < claimTime/2 {
					t.Errorf("trusted until %v after the hand-over", took)
				}
			})
		})
	}
}

// Trap 17: a message that is lost costs a slow ask, not the lease: while the claim lasts or after
// it.
func TestHandOverMessageLostCostsOneAsk(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"default": 15 * time.Second, "long": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease := s.lock(a, "n", holdfast.WithTTL(ttl))
				waiter := s.wait(b, "n", holdfast.WithTTL(ttl))
				pass(22 * time.Second)
				b.lose(back, message, 100)
				s.release(lease)
				released := time.Now()
				if g := s.take(waiter); g.err != nil || g.at.Sub(released) > slowAsk {
					t.Errorf("got in after %v, %v", g.at.Sub(released), g.err)
				}
				asks := s.seen(b, released.Add(-20*time.Second), "ask") // those of joining are close together
				for i := 1; i < len(asks); i++ {
					if d := asks[i].at.Sub(asks[i-1].at); d < 4*time.Second || d > slowAsk {
						t.Errorf("asked after %v", d)
					}
				}
			})
		})
	}
}

// A hand-over that crosses giving up goes on to the next (trap 20).
func TestHandOverCrossesGivingUpGoesOn(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease := s.lock(a, "n")
		ctx, cancel := withCancel(t)
		first := s.waitFor(ctx, b, "n")
		second := s.wait(c, "n")
		pass(time.Second)
		b.slow(back, message, 1, 100*time.Millisecond)
		s.release(lease)
		pass(50 * time.Millisecond)
		cancel()
		gaveUp := time.Now()
		var wait *holdfast.WaitError
		if g := s.take(first); !errors.As(g.err, &wait) || !g.at.Equal(gaveUp) {
			t.Fatalf("gave up with %v", g.err)
		}
		if g := s.take(second); g.err != nil || !g.at.Equal(gaveUp) {
			t.Errorf("the next got in after %v, %v", g.at.Sub(gaveUp), g.err)
		}
	})
}

// The ask of one who gave up, which arrives after it was taken back and joins the queue once more,
// is handed to: its process gives that back at once (trap 20).
func TestHandOverToLateAskGoesBack(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease := s.lock(a, "n")
		other := s.lock(a, "other")
		s.wait(b, "other") // so that b listens
		pass(3 * time.Second)
		b.slow(there, s.script("ask"), 1, 300*time.Millisecond)
		ctx, cancel := withCancel(t)
		first := s.waitFor(ctx, b, "n")
		pass(100 * time.Millisecond)
		cancel()
		var wait *holdfast.WaitError
		if g := s.take(first); !errors.As(g.err, &wait) {
			t.Fatalf("gave up with %v", g.err)
		}
		pass(250 * time.Millisecond)
		second := s.wait(c, "n")
		pass(50 * time.Millisecond)
		released := time.Now()
		s.release(lease)
		if g := s.take(second); g.err != nil || !g.at.Equal(released) {
			t.Errorf("the next got in after %v, %v", g.at.Sub(released), g.err)
		}
		s.release(other)
	})
}

// A hand-over is trusted for its claim, which is short: the first renewal comes after a tenth of
// it, the next as always.
func TestHandOverFirstRenewalComesEarly(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		lease := s.lock(a, "n")
		waiter := s.wait(b, "n")
		pass(10 * time.Millisecond) // so that the allowance for drift is next to nothing
		released := time.Now()
		s.release(lease)
		g := s.take(waiter)
		if g.err != nil {
			t.Fatal(g.err)
		}
		pass(12 * time.Second)
		var at []time.Duration
		for _, renewal := range s.seen(b, released, "renew") {
			at = append(at, renewal.at.Sub(released).Round(time.Millisecond))
		}
		first := claimTime / 10
		if want := []time.Duration{first, first + 5*time.Second, first + 10*time.Second}; !slices.Equal(at, want) {
			t.Errorf("renewed after %v, want %v", at, want)
		}
		s.release(g.lease)
	})
}

package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A max hold ends the context a margin earlier, and the server's expiry is never set past it.
func TestClockMaxHold(t *testing.T) {
	for name, test := range map[string]struct {
		ttl, hold time.Duration
		delay     time.Duration // of each answer
		waiting   bool          // another, so that the state is a set
		handed    bool          // granted by a hand-over
	}{
		"a TTL and a third":    {15 * time.Second, 20 * time.Second, 0, false, false},
		"three TTL":            {15 * time.Second, 45 * time.Second, 0, false, false},
		"with answers slow":    {15 * time.Second, 20 * time.Second, 300 * time.Millisecond, false, false},
		"while others wait":    {15 * time.Second, 20 * time.Second, 0, true, false},
		"handed over":          {15 * time.Second, 20 * time.Second, 0, true, true},
		"below the TTL":        {15 * time.Second, 10 * time.Second, 0, true, false},
		"the shortest":         {15 * time.Second, 100 * time.Millisecond, 0, true, false},
		"just above the TTL":   {15 * time.Second, 15*time.Second + time.Millisecond, 0, true, false},
		"not a whole multiple": {time.Second, 7777777 * time.Microsecond, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				options := []holdfast.Option{holdfast.WithTTL(test.ttl), holdfast.WithMaxHold(test.hold)}
				var lease *holdfast.Lease
				if test.handed {
					first := s.lock(c, "n")
					mine := s.wait(a, "n", options...)
					pass(time.Second)
					s.release(first)
					lease = s.take(mine).lease
				} else {
					s.release(s.lock(a, "other")) // so that the clock is known
					if test.delay > 0 {
						a.slow(back, granted, 1, test.delay)
						a.slow(back, "$1\r\n1\r\n", 100, test.delay)
					}
					lease = s.lock(a, "n", options...)
				}
				sent := time.Now().Add(-test.delay)
				end := sent.Add(test.hold)
				var waiter <-chan got
				if test.waiting {
					waiter = s.wait(b, "n", options...)
				}
				for lease.Err() == nil {
					if left := s.holdLeft("n", lease); left > time.Until(end)+time.Millisecond {
						t.Fatalf("%v after the grant the server keeps it for %v", time.Since(sent), left)
					}
					pass(min(test.ttl/60+time.Millisecond, max(time.Until(lease.Until()), 1)))
				}
				ttl := min(test.ttl, test.hold)
				at := lost(t, lease, holdfast.LossMaxHold)
				want := test.hold - margin(ttl)
				if test.handed {
					want -= time.Second / 100 // the drift of two clocks since the answer that its message is compared with
				}
				if got := at.Sub(sent); got != want {
					t.Errorf("ended after %v, want %v", got, want)
				}
				if test.waiting {
					if g := s.take(waiter); g.err != nil || g.at.Before(at) || g.at.Sub(end) > 10*time.Millisecond {
						t.Errorf("the next got in %v after the end, %v", g.at.Sub(end), g.err)
					}
				}
			})
		})
	}
}

// holdLeft is how long the server keeps a hold, be the state a string or a set.
func (s *scene) holdLeft(name string, lease *holdfast.Lease) time.Duration {
	s.t.Helper()
	if s.rdb.Type(s.t.Context(), key(name)).Val() == "string" {
		return s.left(name)
	}
	now := s.rdb.Time(s.t.Context()).Val()
	for _, z := range s.rdb.ZRangeWithScores(s.t.Context(), key(name), 0, -1).Val() {
		if m := z.Member.(string); len(m) > 27 && m[0] == 'h' && m[5:27] == lease.Owner() {
			return time.UnixMilli(int64(z.Score)).Sub(now)
		}
	}
	return 0
}

// A min hold lets Release return at once and keeps others out until it is over, also after a crash of the holder.
func TestClockMinHold(t *testing.T) {
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

func released(s *scene, _ *actor, lease *holdfast.Lease) { s.t.Helper(); s.release(lease) }

func silenced(_ *scene, a *actor, _ *holdfast.Lease) { a.silence() }

func nothing(*scene, *actor, *holdfast.Lease) {}

// A fixed lease ends a TTL after it was asked for, less the margin, however it was granted, and is not renewed.
func TestClockFixed(t *testing.T) {
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
func TestClockPolling(t *testing.T) {
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
					t.Errorf("it stood in line: a %s", kind)
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

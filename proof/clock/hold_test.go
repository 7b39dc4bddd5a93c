package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A max hold ends the context a margin earlier, and the server's expiry is never set past it.
func TestLeaseMaxHoldEndsInTime(t *testing.T) {
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
				at := lost(t, lease, holdfast.LossMaxHold)
				want := test.hold - margin(test.hold)
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

// The clocks of server and client drift apart for as long as a lease is held: at the end of a max
// hold it is that drift, not the drift of one TTL, by which the server may be ahead.
func TestLeaseMaxHoldAllowsForDrift(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		s.lock(a, "n", holdfast.WithTTL(3*time.Second), holdfast.WithMaxHold(time.Minute))
		waiter, began := s.wait(b, "n"), time.Now()
		go func() {
			for time.Since(began) < time.Minute { // a hundredth fast, nearly
				<-time.After(10 * time.Millisecond)
				s.clock.Ahead(time.Since(began) * 9 / 1000)
			}
		}()
		if g := s.take(waiter); g.err != nil { // take checks that the first knows by then
			t.Error(g.err)
		}
		until(began.Add(time.Minute + time.Second))
	})
}

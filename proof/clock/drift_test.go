package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Renewals of one reader must not bring forward the end of another's hold.
func TestReaderRenewalsKeepOtherReader(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		const ttl = 10 * time.Second
		long := s.take(readers(a, holdfast.WithoutRenewal(), holdfast.WithTTL(ttl)))
		began := time.Now()
		sleep(300 * time.Microsecond)
		short := s.take(readers(b, holdfast.WithTTL(100*time.Millisecond)))
		sleepUntil(began.Add(ttl - 300*time.Millisecond))

		s.release(short)
		for long.Err() == nil {
			if _, err := c.RWMutex("n").TryLock(t.Context()); err == nil {
				t.Fatalf("a writer is in at %v, and a reader is trusted for %v more", time.Since(began),
					time.Until(long.Until()))
			}
			sleep(5 * time.Millisecond)
		}
	})
}

// The clocks of server and client drift apart for as long as a lease is held: at the end of a max
// hold it is that drift, not the drift of one TTL, by which the server may be ahead.
func TestLeaseMaxHoldAllowsForDrift(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		s.lock(a, "n", holdfast.WithTTL(3*time.Second), holdfast.WithMaxHold(time.Minute))
		waiter, began := s.startLock(b, "n"), time.Now()
		go func() {
			for time.Since(began) < time.Minute { // a hundredth fast, nearly
				<-time.After(10 * time.Millisecond)
				s.clock.Ahead(time.Since(began) * 9 / 1000)
			}
		}()
		if g := s.await(waiter); g.err != nil { // await checks that the first knows by then
			t.Error(g.err)
		}
		sleepUntil(began.Add(time.Minute + time.Second))
	})
}

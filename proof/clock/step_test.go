package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// Trap 2 and 40: the server's clock steps back, or forward to where it was, while one holds and
// another waits: nobody gets in beside the holder, nobody is stuck, and tokens grow.
func TestMutexServerStepsBackExcludes(t *testing.T) {
	for name, steps := range map[string][]time.Duration{
		"an hour back":           {-time.Hour},
		"back and forth":         {-time.Hour, 0},
		"a second back":          {-time.Second},
		"a second back and back": {-time.Second, -2 * time.Second},
	} {
		for kind, waiting := range map[string]bool{"alone": false, "while others wait": true} {
			runPlay(t, name+"/"+kind, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				lease := s.lock(a, "n")
				var waiter <-chan got
				if waiting {
					waiter = s.startLock(b, "n")
				}
				sleep(time.Second)
				for _, step := range steps {
					s.clock.Ahead(step)
					sleep(time.Second)
					if step == 0 {
						break // the clock was an hour behind: what it gave then may be over now
					}
					sleep(20 * time.Second)
					if _, err := c.Mutex("n").TryLock(t.Context()); err == nil || lease.Err() != nil {
						t.Fatalf("TryLock: %v, the holder: %v", err, lease.Err())
					}
				}
				if !waiting {
					waiter = s.startLock(b, "n")
				}
				_ = lease.Release()
				released := time.Now()
				g := s.await(waiter)
				if took := g.at.Sub(released); g.err != nil || took > slowAsk {
					t.Fatalf("the next got in after %v, %v", took, g.err)
				}
				sleep(time.Minute)
				if err := g.lease.Err(); err != nil {
					t.Errorf("the next lost it: %v", err)
				}
			})
		}
	}
}

// A step forward lets all leases lapse at the server. A holder is told by the next answer, nothing
// is revived, and whoever gets in has a larger token.
func TestMutexServerStepsForwardTellsHolder(t *testing.T) {
	for kind, test := range map[string]struct {
		from    time.Time
		by      time.Duration
		waiting bool
	}{
		"alone":                            {time.Unix(1_790_000_000, 0), time.Hour, false},
		"while others wait":                {time.Unix(1_790_000_000, 0), time.Hour, true},
		"by years, while others wait":      {time.UnixMicro(7), 30 * 365 * 24 * time.Hour, true},
		"over September 2001, others wait": {time.UnixMicro(1e15 - 5e6), 7 * time.Hour, true},
	} {
		runPlay(t, kind, func(t *testing.T, s *scene) {
			a, b := s.actor("a"), s.actor("b")
			s.clock.Show(test.from)
			lease := s.lock(a, "n")
			waiter := make(<-chan got)
			if test.waiting {
				waiter = s.startLock(b, "n")
			}
			sleep(time.Second)
			s.clock.Show(s.clock.Now().Add(test.by))
			stepped := time.Now()
			if end := awaitLoss(t, lease, holdfast.LossGone); end.Sub(stepped) > 5*time.Second {
				t.Errorf("told after %v", end.Sub(stepped))
			}
			if !test.waiting {
				waiter = s.startLock(b, "n")
			}
			if g := s.await(waiter); g.err != nil || g.at.Sub(stepped) > 2*slowAsk ||
				g.lease.Token() <= lease.Token() {
				t.Errorf("the next got in after %v, %v", g.at.Sub(stepped), g.err)
			}
		})
	}
}

// Trap 40: tokens grow through every step of the server's clock, and the first request after one is
// answered.
func TestTokensGrowThroughClockSteps(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		for i, step := range []time.Duration{0, time.Hour, 0, -time.Hour, -2 * time.Hour, time.Hour, time.Hour,
			24 * time.Hour, 0, time.Millisecond} {
			s.clock.Ahead(step)
			for _, actor := range []*actor{a, b, a} {
				lease, err := actor.Mutex("n").TryLock(t.Context())
				if err != nil {
					t.Fatalf("step %d, to %v: %v", i, step, err)
				}
				s.checkAlone(lease)
				s.release(lease)
			}
			sleep(time.Second)
		}
	})
}

// A server's clock that is set between the last answer and the hand-over does not make its trust
// longer.
func TestHandOverAfterClockStepIsTrustedNoLonger(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -time.Second, -10 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond,
		400 * time.Millisecond, time.Second, time.Hour} {
		for name, silent := range map[string]bool{"": false, ", then silent": true} {
			runPlay(t, fmt.Sprint(step, name), func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				lease := s.lock(a, "n")
				waiter := s.startLock(b, "n")
				sleep(3 * time.Second)
				if silent {
					b.Silence(network.There)
				}
				s.clock.Ahead(step)
				released := time.Now()
				_ = lease.Release()
				if !silent {
					if g := s.await(waiter); g.err != nil || g.at.Sub(released) > slowAsk {
						t.Errorf("got in after %v, %v", g.at.Sub(released), g.err)
					}
					return
				}
				select {
				case g := <-waiter:
					if end := awaitLoss(t, g.lease, holdfast.LossExpired); end.Sub(released) > claimTime {
						t.Errorf("trusted until %v after the hand-over", end.Sub(released))
					}
				case <-time.After(time.Second):
				}
				s.await(s.startLock(c, "n"))
			})
		}
	}
}

// The server's clock is set back by ten seconds while a lease lasts that has an end of its own. Its
// process goes by its own clock. A process that attaches the lease after that knows of the grant by
// the server's clock alone, and ends the lease later. So does the server, which lets nobody in
// before.
func TestServerStepsBackUnderLeasesThatEnd(t *testing.T) {
	const ends, back, attached = 20 * time.Second, 10 * time.Second, 5 * time.Second
	for name, c := range map[string]struct {
		option   holdfast.Option
		reason   holdfast.Reason
		attaches bool
		late     time.Duration // how much later the lease ends
	}{
		"max hold":              {holdfast.WithMaxHold(ends), holdfast.LossMaxHold, false, 0},
		"max hold, attached":    {holdfast.WithMaxHold(ends), holdfast.LossMaxHold, true, back},
		"not renewed":           {holdfast.WithoutRenewal(), holdfast.LossExpired, false, 0},
		"not renewed, attached": {holdfast.WithoutRenewal(), holdfast.LossExpired, true, attached}, // a TTL after that
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b, third := s.actor("a"), s.actor("b"), s.actor("c")
			granted := time.Now()
			lease := s.lock(a, "n", holdfast.WithTTL(ends), c.option)
			sleep(attached)
			s.clock.Ahead(-back)
			if c.attaches {
				ticket, err := lease.Detach()
				if err != nil {
					t.Fatal(err)
				}
				if lease, err = b.Attach(t.Context(), ticket); err != nil {
					t.Fatal(err)
				}
			}
			waiter := s.startLock(third, "n")
			at := awaitLoss(t, lease, c.reason)
			if took, want := at.Sub(granted), ends+c.late-margin(ends); took > want || took < want-want/50 {
				t.Errorf("ended after %v, want %v", took, want)
			}
			// nobody releases the lease
			if g := s.await(waiter); g.err != nil || g.at.Before(at) || g.at.Sub(granted) > ends+back+slowAsk {
				t.Errorf("the next got in after %v, %v", g.at.Sub(granted), g.err)
			}
		})
	}
}

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

package clock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
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

// eachDigit plays a scene for each power of ten. The server's clock has shown 1 us since 1970, and
// at each power its text has a digit more. The last is that of September 2001. Nothing here is
// exactly at one: the embedded server writes a score of one digit and zeros in a way that its own
// Lua does not read.
func eachDigit(t *testing.T, f func(t *testing.T, s *scene, more int64)) {
	for power := range 16 {
		t.Run(fmt.Sprint("1e", power), func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) { f(t, s, int64(math.Pow10(power))) })
		})
	}
}

// awaitNow returns what a waiter got at this very moment.
func (s *scene) awaitNow(waiter <-chan got, what string) *holdfast.Lease {
	s.t.Helper()
	synctest.Wait()
	select {
	case g := <-waiter:
		if g.err != nil {
			s.t.Fatalf("%s: %v", what, g.err)
		}
		s.checkAlone(g.lease)
		return g.lease
	default:
		s.t.Fatalf("%s is not in", what)
		return nil
	}
}

// tryBusy returns what one who tries is told.
func tryBusy(t *testing.T, lock lockFunc) *holdfast.HeldError {
	t.Helper()
	var held *holdfast.HeldError
	if _, err := lock(t.Context()); !errors.As(err, &held) {
		t.Fatalf("one who tries got %v", err)
	}
	return held
}

// Waiters that join a microsecond apart, while the server's clock gets a digit more, are handed the
// lock in order. Tokens follow the clock, and others are told who holds and how many wait.
func TestQueueAtEveryDigitOfClockKeepsOrder(t *testing.T) {
	eachDigit(t, func(t *testing.T, s *scene, more int64) {
		a, other := s.actor("a"), s.actor("other")
		s.clock.Show(time.UnixMicro(max(1, more-3)))
		first := s.clock.Now().UnixMicro()
		lease := s.lock(a, "n")
		if lease.Token() != first {
			t.Errorf("token %d at %d", lease.Token(), first)
		}
		sleep(time.Microsecond)
		var line []<-chan got
		for i := range 6 {
			if s.clock.Now().UnixMicro() == more {
				sleep(time.Microsecond)
			}
			line = append(line, s.startLock(s.actor(fmt.Sprint("w", i)), "n"))
			for _, lock := range []lockFunc{other.Mutex("n").TryLock, other.All([]string{"m", "n"}).TryLock} {
				held := tryBusy(t, lock)
				if held.Waiters != i+1 || held.Remaining <= 0 || held.Remaining > 15*time.Second {
					t.Errorf("with %d who wait: %+v", i+1, held)
				}
			}
			sleep(time.Microsecond)
		}
		for i, waiter := range line {
			s.release(lease)
			lease = s.awaitNow(waiter, fmt.Sprint("waiter ", i))
			if now := s.clock.Now().UnixMicro(); lease.Token() < now || lease.Token() > now+int64(len(line)) {
				t.Errorf("token %d at %d", lease.Token(), now)
			}
		}
		s.release(lease)
	})
}

// Holds that end by themselves end in time, also while the server's clock gets a digit more.
func TestHoldAtEveryDigitOfClockEndsInTime(t *testing.T) {
	const ttl = 100 * time.Millisecond
	permits := func(a *actor, options ...holdfast.Option) lockFunc {
		s := a.Semaphore("n", 3, options...)
		return func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, 2) }
	}
	fixed, kept, ended := holdfast.WithoutRenewal(), holdfast.WithMinHold(ttl), holdfast.WithMaxHold(3*ttl)
	type use func(*actor, ...holdfast.Option) lockFunc
	for name, test := range map[string]struct {
		take, wait use
		options    []holdfast.Option
		freed      bool
		lasts      time.Duration // at the server
	}{
		"mutex":                {mutexes, mutexes, []holdfast.Option{fixed}, false, ttl},
		"owner":                {mutexes, mutexes, []holdfast.Option{fixed, holdfast.WithOwner("me")}, false, ttl},
		"reader":               {readers, writers, []holdfast.Option{fixed}, false, ttl},
		"permits":              {permits, permits, []holdfast.Option{fixed}, false, ttl},
		"min hold":             {mutexes, mutexes, []holdfast.Option{kept}, true, ttl},
		"min hold of a reader": {readers, writers, []holdfast.Option{kept}, true, ttl},
		"max hold":             {mutexes, mutexes, []holdfast.Option{ended}, false, 3 * ttl},
		"max hold of a reader": {readers, writers, []holdfast.Option{ended}, false, 3 * ttl},
	} {
		t.Run(name, func(t *testing.T) {
			eachDigit(t, func(t *testing.T, s *scene, more int64) {
				a, b := s.actor("a"), s.actor("b")
				s.clock.Show(time.UnixMicro(max(1, more-(ttl/2).Microseconds()-7)))
				began := time.Now()
				lease := s.take(test.take(a, append(test.options, holdfast.WithTTL(ttl))...))
				waiter := s.start(t.Context(), test.wait(b))
				if test.freed {
					s.release(lease)
				}
				g := s.awaitBetween(waiter, began, test.lasts, test.lasts+10*time.Millisecond)
				if lease.Err() == nil || g.lease.Token() <= lease.Token() {
					t.Errorf("token %d after %d, which says %v", g.lease.Token(), lease.Token(), lease.Err())
				}
				s.release(g.lease)
			})
		})
	}
}

// The server's clock is set in the middle of a line: over a digit, back by years, and by more
// years. Who joins then is behind all who joined before. Nobody loses a place, and all are handed
// on in order.
func TestQueueClockSetKeepsOrder(t *testing.T) {
	const today, in2000, year1970 = 1_790_000_000 * time.Second, 946_684_800 * time.Second, time.Microsecond
	type times = []time.Duration // since 1970
	settings := map[string]times{
		"to 2000":                {today, in2000},
		"to 2000 and 1970":       {today, in2000, year1970},
		"to 1970":                {today, 1500 * time.Millisecond},
		"from 2200":              {7_258_118_400 * time.Second, today, year1970},
		"by seconds within 1970": {3 * time.Second, 2 * time.Second, year1970},
	}
	const step = 8 * time.Second // less than the life of a place, and of a hold
	for power := 7; power < 16; power++ {
		at := time.Duration(math.Pow10(power)+3) * time.Microsecond
		before, behind := at-step/2, at+step/2
		settings[fmt.Sprintf("1e%d, forward", power)] = times{before, behind}
		settings[fmt.Sprintf("1e%d, back", power)] = times{behind, before}
		settings[fmt.Sprintf("1e%d, back and forward", power)] = times{behind, before, behind}
		settings[fmt.Sprintf("1e%d, to its first", power)] = times{at, year1970}
	}
	for name, shows := range settings {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, other := s.actor("a"), s.actor("other")
			var lease *holdfast.Lease
			var line []<-chan got
			for i, at := range shows {
				sleep(10 * time.Millisecond)
				if s.clock.Show(time.Unix(0, 0).Add(at)); i == 0 {
					lease = s.lock(a, "n", holdfast.WithTTL(time.Minute))
				}
				for range 2 {
					line = append(line, s.startLock(s.actor(fmt.Sprint("w", len(line))), "n"))
				}
				if held := tryBusy(t, other.Mutex("n").TryLock); held.Waiters != len(line) || held.Holder != "a" {
					t.Errorf("when %d wait: %+v", len(line), held)
				}
			}
			sleep(7 * time.Second) // all have asked again
			for i, waiter := range line {
				s.release(lease)
				lease = s.awaitNow(waiter, fmt.Sprint("waiter ", i))
			}
			s.release(lease)
		})
	}
}

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
)

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

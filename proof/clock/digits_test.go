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

// The server's clock has shown 1 us since 1970, and at each power of ten from then on its text has
// a digit more. The last is that of September 2001. Nothing here is exactly at one: the embedded
// server writes a score of one digit and zeros in a way that its own Lua does not read.
func eachDigit(t *testing.T, f func(t *testing.T, s *scene, more int64)) {
	for power := range 16 {
		t.Run(fmt.Sprint("1e", power), func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) { f(t, s, int64(math.Pow10(power))) })
		})
	}
}

// waits lets somebody wait for anything, as wait does for a mutex.
func (s *scene) waits(lock func(context.Context) (*holdfast.Lease, error)) <-chan got {
	done := make(chan got, 1)
	go func() {
		lease, err := lock(s.t.Context())
		done <- got{lease, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// in is what a waiter got at this very moment.
func (s *scene) in(waiter <-chan got, what string) *holdfast.Lease {
	s.t.Helper()
	synctest.Wait()
	select {
	case g := <-waiter:
		if g.err != nil {
			s.t.Fatalf("%s: %v", what, g.err)
		}
		s.alone(g.lease)
		return g.lease
	default:
		s.t.Fatalf("%s is not in", what)
		return nil
	}
}

// busy is what one who tries is told.
func busy(t *testing.T, lock func(context.Context) (*holdfast.Lease, error)) *holdfast.HeldError {
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
		pass(time.Microsecond)
		var line []<-chan got
		for i := range 6 {
			if s.clock.Now().UnixMicro() == more {
				pass(time.Microsecond)
			}
			line = append(line, s.wait(s.actor(fmt.Sprint("w", i)), "n"))
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){other.Mutex("n").TryLock, other.All([]string{"m", "n"}).TryLock} {
				held := busy(t, lock)
				if held.Waiters != i+1 || held.Remaining <= 0 || held.Remaining > 15*time.Second {
					t.Errorf("with %d who wait: %+v", i+1, held)
				}
			}
			pass(time.Microsecond)
		}
		for i, waiter := range line {
			s.release(lease)
			lease = s.in(waiter, fmt.Sprint("waiter ", i))
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
	fixed := []holdfast.Option{holdfast.WithTTL(ttl), holdfast.WithoutRenewal()}
	for name, test := range map[string]struct {
		take, wait func(*actor, context.Context) (*holdfast.Lease, error)
		freed      bool
		lasts      time.Duration // at the server
	}{
		"mutex": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) { return a.Mutex("n", fixed...).Lock(ctx) },
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.Mutex("n").Lock(ctx) }, lasts: ttl,
		},
		"owner": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.Mutex("n", append(fixed, holdfast.WithOwner("me"))...).Lock(ctx)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.Mutex("n").Lock(ctx) }, lasts: ttl,
		},
		"reader": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.RWMutex("n", fixed...).RLock(ctx)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.RWMutex("n").Lock(ctx) }, lasts: ttl,
		},
		"permits": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.Semaphore("n", 3, fixed...).Acquire(ctx, 2)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) {
				return b.Semaphore("n", 3).Acquire(ctx, 2)
			}, lasts: ttl,
		},
		"min hold": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.Mutex("n", holdfast.WithMinHold(ttl)).Lock(ctx)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.Mutex("n").Lock(ctx) }, freed: true, lasts: ttl,
		},
		"min hold of a reader": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.RWMutex("n", holdfast.WithMinHold(ttl)).RLock(ctx)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.RWMutex("n").Lock(ctx) }, freed: true, lasts: ttl,
		},
		"max hold": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.Mutex("n", holdfast.WithTTL(ttl), holdfast.WithMaxHold(3*ttl)).Lock(ctx)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.Mutex("n").Lock(ctx) }, lasts: 3 * ttl,
		},
		"max hold of a reader": {
			take: func(a *actor, ctx context.Context) (*holdfast.Lease, error) {
				return a.RWMutex("n", holdfast.WithTTL(ttl), holdfast.WithMaxHold(3*ttl)).RLock(ctx)
			},
			wait: func(b *actor, ctx context.Context) (*holdfast.Lease, error) { return b.RWMutex("n").Lock(ctx) }, lasts: 3 * ttl,
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachDigit(t, func(t *testing.T, s *scene, more int64) {
				a, b := s.actor("a"), s.actor("b")
				s.clock.Show(time.UnixMicro(max(1, more-(ttl/2).Microseconds()-7)))
				began := time.Now()
				lease, err := test.take(a, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waiter := s.waits(func(ctx context.Context) (*holdfast.Lease, error) { return test.wait(b, ctx) })
				if test.freed {
					s.release(lease)
				}
				g := <-waiter
				if took := g.at.Sub(began); g.err != nil || took < test.lasts || took > test.lasts+10*time.Millisecond {
					t.Fatalf("the next is in after %v of %v, %v", took, test.lasts, g.err)
				}
				if lease.Err() == nil || g.lease.Token() <= lease.Token() {
					t.Errorf("token %d after %d, which says %v", g.lease.Token(), lease.Token(), lease.Err())
				}
				s.release(g.lease)
			})
		})
	}
}

// The server's clock stands still at its first microsecond, or behind a digit more: order and
// tokens do not need it.
func TestQueueClockStandsStillKeepsOrder(t *testing.T) {
	for _, at := range []int64{1, 999, 999_999, 1e15 - 1, 1e15 + 1} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				s.clock.Stop(time.UnixMicro(at))
				lease := s.lock(s.actor("a"), "n")
				var line []<-chan got
				for i := range 5 {
					line = append(line, s.wait(s.actor(fmt.Sprint("w", i)), "n"))
				}
				for i, waiter := range line {
					s.release(lease)
					if lease = s.in(waiter, fmt.Sprint("waiter ", i)); lease.Token() != at+int64(i)+1 {
						t.Errorf("token %d of waiter %d", lease.Token(), i)
					}
				}
				s.release(lease)
			})
		})
	}
}

// The server's clock steps over a digit in the middle of a line: who joins then is behind all who
// joined before, and all are handed on in order.
func TestQueueClockStepsOverDigitKeepsOrder(t *testing.T) {
	const step = 8 * time.Second // less than the life of a place, and of a hold
	for power := 7; power < 16; power++ {
		at := time.UnixMicro(int64(math.Pow10(power)) + 3)
		for name, shows := range map[string][]time.Time{
			"forward":          {at.Add(-step / 2), at.Add(step / 2)},
			"back":             {at.Add(step / 2), at.Add(-step / 2)},
			"back and forward": {at.Add(step / 2), at.Add(-step / 2), at.Add(step / 2)},
			"to its first":     {at, time.UnixMicro(1)},
		} {
			t.Run(fmt.Sprintf("1e%d, %s", power, name), func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a, other := s.actor("a"), s.actor("other")
					s.clock.Show(shows[0])
					lease := s.lock(a, "n", holdfast.WithTTL(time.Minute))
					s.joinThrough(lease, shows[1:], other)
				})
			})
		}
	}
}

// The server's clock is set back by years, and by more years: nobody loses a place.
func TestQueueClockStepsBackByYearsKeepsPlaces(t *testing.T) {
	const today = 1_790_000_000 * time.Second
	for name, shows := range map[string][]time.Duration{
		"to 2000":                {today, 946_684_800 * time.Second},
		"to 2000 and 1970":       {today, 946_684_800 * time.Second, time.Microsecond},
		"to 1970":                {today, 1500 * time.Millisecond},
		"from 2200":              {7_258_118_400 * time.Second, today, time.Microsecond},
		"by seconds within 1970": {3 * time.Second, 2 * time.Second, time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, other := s.actor("a"), s.actor("other")
				s.clock.Show(time.Unix(0, 0).Add(shows[0]))
				lease := s.lock(a, "n", holdfast.WithTTL(time.Minute))
				var rest []time.Time
				for _, d := range shows[1:] {
					rest = append(rest, time.Unix(0, 0).Add(d))
				}
				s.joinThrough(lease, rest, other)
			})
		})
	}
}

// joinThrough lets two join, then two more at each time that the server's clock is set to, and
// hands the lock through.
func (s *scene) joinThrough(lease *holdfast.Lease, shows []time.Time, other *actor) {
	s.t.Helper()
	var line []<-chan got
	join := func() {
		for range 2 {
			line = append(line, s.wait(s.actor(fmt.Sprint("w", len(line))), "n"))
		}
	}
	join()
	for _, at := range shows {
		pass(10 * time.Millisecond)
		s.clock.Show(at)
		join()
		if held := busy(s.t, other.Mutex("n").TryLock); held.Waiters != len(line) || held.Holder != "a" {
			s.t.Errorf("when %d wait: %+v", len(line), held)
		}
	}
	pass(7 * time.Second) // all have asked again
	for i, waiter := range line {
		s.release(lease)
		lease = s.in(waiter, fmt.Sprint("waiter ", i))
	}
	s.release(lease)
}

// A clock that is set forward by years ends holds and places, as if it was time that passed. All
// waiters get in, one after the other, with tokens that grow.
func TestQueueClockStepsForwardByYearsServesAll(t *testing.T) {
	for from, to := range map[int64]int64{1: 946_684_800e6, 1_000_000: 1_790_000_000e6, 946_684_800e6: 1_790_000_000e6, 1e15 - 5e6: 7_258_118_400e6} {
		t.Run(fmt.Sprint(from, " to ", to), func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				s.clock.Show(time.UnixMicro(from))
				lease := s.lock(s.actor("a"), "n")
				var line []<-chan got
				for i := range 3 {
					line = append(line, s.wait(s.actor(fmt.Sprint("w", i)), "n"))
				}
				pass(time.Second)
				s.clock.Show(time.UnixMicro(to))
				stepped := time.Now()
				for range line {
					var g got
					select {
					case g = <-line[0]:
					case g = <-line[1]:
					case g = <-line[2]:
					case <-time.After(4 * slowAsk):
						t.Fatal("nobody is in")
					}
					if g.err != nil || g.lease.Token() <= lease.Token() || g.lease.Token() < to {
						t.Fatalf("in after %v, token %v, %v", g.at.Sub(stepped), g.lease, g.err)
					}
					s.release(g.lease)
				}
				if end := lost(t, lease, holdfast.LossGone); end.Sub(stepped) > 5*time.Second {
					t.Errorf("told after %v", end.Sub(stepped))
				}
			})
		})
	}
}

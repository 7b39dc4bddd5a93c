package clock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// Trap 18: a waiter that died is skipped. After three missed asks, 18 s, it has no place any more.
func TestQueueDeadWaiterIsSkipped(t *testing.T) {
	for name, test := range map[string]struct {
		die   func(b *actor)
		after time.Duration // of its death: the release
		max   time.Duration // until the next got in
	}{
		"silent, within its life":        {(*actor).Pause, 10 * time.Second, claimTime + slowAsk},
		"requests lost, after its life":  {func(b *actor) { b.Silence(network.There) }, 20 * time.Second, 0},
		"killed, within its life":        {(*actor).Kill, time.Second, 0},
		"killed, after its life":         {(*actor).Kill, 20 * time.Second, 0},
		"silent, after ten times it all": {(*actor).Pause, 200 * time.Second, 0},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
			lease := s.lock(a, "n")
			s.startLock(b, "n")
			second := s.startLock(c, "n")
			sleep(time.Second)
			test.die(b)
			sleep(test.after)
			s.release(lease)
			g := s.awaitBetween(second, time.Now(), 0, test.max)
			sleep(20 * time.Second)
			s.release(g.lease)
			sleep(7 * time.Second)
			if n := s.rdb.Exists(t.Context(), key("n")).Val(); n != 0 {
				t.Errorf("the dead one is still there: %v", s.rdb.ZRange(t.Context(), key("n"), 0, -1).Val())
			}
		})
	}
}

// A group does not pass who waits for one of its names: neither where the name has just become
// free, nor later.
func TestGroupPassesNobody(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		s.lock(a, "n", holdfast.WithTTL(time.Second), holdfast.WithoutRenewal())
		waiter := s.startLock(b, "n")
		sleep(time.Second)
		if left := s.remainingTTL("n"); left > 0 { // it is over, and who waits has not asked yet
			t.Fatalf("held for another %v", left)
		}
		if lease, err := c.All([]string{"m", "n"}).TryLock(t.Context()); err == nil {
			t.Errorf("it passed one who waits, with tokens %v", lease.Tokens())
		}
		if g := s.await(waiter); g.err != nil {
			t.Error(g.err)
		}
	})
}

// A waiter that is dead is evicted while others wait for the name all the time, none of them for
// long. The server forgets the eviction when its time is over.
func TestEvictedIsForgotten(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease := s.lock(a, "n")
		s.startLock(b, "n")
		sleep(time.Second)
		b.Pause()
		info, err := c.Inspect(t.Context(), "n")
		if err != nil || len(info.Queue) != 1 {
			t.Fatalf("the queue is %+v, %v", info.Queue, err)
		}
		if err := c.Evict(t.Context(), "n", info.Queue[0].ID); err != nil {
			t.Fatal(err)
		}
		markers := func() (n int) {
			for _, member := range s.rdb.ZRange(t.Context(), key("n")+":queue", 0, -1).Val() {
				if strings.HasPrefix(member, "e") {
					n++
				}
			}
			return n
		}
		if n := markers(); n != 2 {
			t.Errorf("%d markers", n)
		}
		actors := []*actor{c, a}
		for i := range 40 {
			next := s.startLock(actors[i%2], "n")
			sleep(time.Second)
			began := time.Now()
			s.release(lease)
			g := s.await(next)
			if g.err != nil || g.at.Sub(began) > 0 {
				t.Fatalf("the next got in after %v, %v", g.at.Sub(began), g.err)
			}
			lease = g.lease
		}
		if n := markers(); n != 0 {
			t.Errorf("%d markers are left after 40 s", n)
		}
		s.release(lease)
	})
}

// atItsEnd fails unless a waiter gets in when a min hold is over.
func (s *scene) atItsEnd(waiter <-chan got, began time.Time, hold time.Duration) {
	s.t.Helper()
	s.awaitBetween(waiter, began, hold-time.Millisecond, hold+10*time.Millisecond)
}

// The first in the queue is told when a min hold is over. If it gives up meanwhile, the next is
// told.
func TestMinHoldFirstLeavesNextIsTold(t *testing.T) {
	const hold = 4 * time.Second
	for name, test := range map[string]struct {
		hold, wait func(a *actor, options ...holdfast.Option) lockFunc
	}{
		"mutex":   {mutexes, mutexes},
		"readers": {readers, writers},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
			lease, began := s.acquire(test.hold(a, holdfast.WithMinHold(hold))), time.Now()
			ctx, leave := context.WithCancel(t.Context())
			for range 2 {
				s.start(ctx, test.wait(b))
				sleep(100 * time.Millisecond)
			}
			next := s.start(t.Context(), test.wait(c))
			sleep(time.Second)
			s.release(lease)
			sleep(time.Second)
			leave()
			s.atItsEnd(next, began, hold)
		})
	}
}

// A waiter that becomes the first in the queue while a min hold still keeps a permit is told when
// that is over, also if others hold.
func TestMinHoldNewFirstIsTold(t *testing.T) {
	const hold = 4 * time.Second
	for name, test := range map[string]struct {
		permits  int64
		others   int // of the permits, held for long
		weight   int64
		releases bool // another holder, so that the first gets in; else that gives up
	}{
		"the first got in by a release": {2, 0, 1, true},
		"and others hold for shorter":   {3, 1, 1, true},
		"the first gave up":             {3, 1, 2, false},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b, c, d := s.actor("a"), s.actor("b"), s.actor("c"), s.actor("d")
			permits := func(a *actor, weight int64, options ...holdfast.Option) lockFunc {
				return func(ctx context.Context) (*holdfast.Lease, error) {
					return a.Semaphore("n", test.permits, options...).Acquire(ctx, weight)
				}
			}
			kept := s.take(permits(a, 1, holdfast.WithMinHold(hold)))
			began := time.Now()
			other := s.take(permits(a, 1, holdfast.WithTTL(time.Minute)))
			for range test.others {
				s.take(permits(d, 1, holdfast.WithTTL(3*time.Second)))
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			s.start(ctx, permits(b, test.weight))
			sleep(10 * time.Millisecond)
			second := s.start(t.Context(), permits(c, 1))
			sleep(10 * time.Millisecond)
			s.release(kept)
			sleep(500 * time.Millisecond)
			if test.releases {
				s.release(other)
			} else {
				leave()
			}
			s.atItsEnd(second, began, hold)
		})
	}
}

// A caller asks 10 ms after the one before it, once.
type caller struct {
	lock    func(a *actor, options ...holdfast.Option) lockFunc
	holds   time.Duration // until its release; 0: it releases nothing
	options []holdfast.Option
	waits   time.Duration // after which it gives up; 0: never
}

// take does what the caller does, and returns when it entered. Its release goes on.
func (c caller) take(t *testing.T, a *actor) time.Time {
	ctx := t.Context()
	if c.waits > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.waits)
		defer cancel()
	}
	lease, err := c.lock(a, append([]holdfast.Option{holdfast.WithTTL(time.Minute)}, c.options...)...)(ctx)
	entered := time.Now()
	if err != nil {
		if c.waits == 0 {
			t.Error(err)
		}
		return entered
	}
	if c.holds > 0 {
		time.AfterFunc(c.holds, func() {
			if err := lease.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	return entered
}

// The first in the queue enters when it can, whatever it waits for. These are mixes in which a
// waiter was told of nothing, and entered up to six seconds late, when it asked by itself. The last
// caller of each is the one to look at.
func TestWaiterEntersWhenItCan(t *testing.T) {
	const s = time.Second
	of := func(all, n int64) func(*actor, ...holdfast.Option) lockFunc {
		return func(a *actor, options ...holdfast.Option) lockFunc {
			semaphore := a.Semaphore("n", all, options...)
			return func(ctx context.Context) (*holdfast.Lease, error) { return semaphore.Acquire(ctx, n) }
		}
	}
	type (
		lock = func(*actor, ...holdfast.Option) lockFunc
		line = []caller
	)
	holds := func(lock lock, d time.Duration) caller { return caller{lock, d, nil, 0} }
	keeps := func(lock lock, least, d time.Duration) caller {
		return caller{lock, d, []holdfast.Option{holdfast.WithMinHold(least)}, 0}
	}
	runsOut := func(lock lock, ttl time.Duration) caller {
		return caller{lock, 0, []holdfast.Option{holdfast.WithTTL(ttl), holdfast.WithoutRenewal()}, 0}
	}
	owned := func(c caller) caller { c.options = append(c.options, holdfast.WithOwner("o")); return c }
	one2, one3 := of(2, 1), of(3, 1)
	for name, test := range map[string]struct {
		line line
		at   time.Duration // when the last one can enter
	}{
		"readers that a min hold kept out enter together": {
			line{keeps(writers, 2*s, s), holds(readers, s), holds(readers, s)}, 2 * s},
		"permits that a min hold kept go to several": {
			line{keeps(of(2, 2), 2*s, s), holds(one2, s), holds(one2, s)}, 2 * s},
		"a lease that was handed over runs out": {
			line{holds(mutexes, s), runsOut(mutexes, s), holds(mutexes, s)}, 2 * s},
		"a reader's lease that was handed over runs out": {
			line{holds(writers, s), runsOut(readers, s), holds(writers, s)}, 2 * s},
		"a lease that was asked for after a min hold runs out": {
			line{keeps(mutexes, 2*s, s), runsOut(mutexes, s), holds(mutexes, s)}, 3 * s},
		"a lease runs out before a min hold beside it": {
			line{keeps(one3, 5*s, s/2), holds(one3, s), holds(one3, 2*s), runsOut(one3, 2*s),
				holds(one3, 60*s), holds(one3, s)}, 3 * s},
		"a lease runs out, and the first in the queue came there since": {
			line{holds(one2, s), holds(one2, 2*s), runsOut(one2, 2*s), holds(one2, 60*s), holds(one2, s)}, 3 * s},
		"a lease runs out, and the first in the queue gave up": {
			line{holds(one2, s), holds(one2, 60*s), runsOut(one2, 2*s), {one2, s, nil, 2 * s}, holds(one2, s)}, 3 * s},
		"a lease that was asked for runs out, and the first came there since": {
			line{keeps(of(2, 2), s, s/2), runsOut(one2, 2*s), holds(one2, s/2), holds(one2, 60*s),
				holds(one2, s)}, 3 * s},
		"a lease that its owner took beside another runs out": {
			line{owned(holds(mutexes, s)), holds(mutexes, s), owned(runsOut(mutexes, 2*s))}, 2 * s},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			began, entered := time.Now(), make(chan time.Duration, len(test.line))
			for i, c := range test.line {
				a := s.actor(fmt.Sprint("c", i))
				go func() { entered <- c.take(t, a).Sub(began) }()
				sleep(10 * time.Millisecond)
			}
			var last time.Duration
			for range test.line {
				last = max(last, <-entered)
			}
			if last < test.at-time.Millisecond || last > test.at+100*time.Millisecond {
				t.Errorf("the last one entered after %v, want %v", last, test.at)
			}
			sleep(2 * time.Minute) // the releases
		})
	}
}

// A writer that becomes the first in the queue after a fixed reader was extended, past the end that
// the reader had before, is told when the reader's hold is over. It enters then, and not 20 ms
// later.
func TestWriterEntersWhenExtendedReaderEnds(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const ttl = time.Minute
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		long := holdfast.WithTTL(ttl)
		lease := s.take(readers(a, long, holdfast.WithoutRenewal()))
		first, giveUp := context.WithCancel(t.Context())
		gaveUp := s.start(first, writers(b, long))
		sleep(time.Second)
		entered := s.start(t.Context(), writers(c, long))
		sleep(ttl - 3*time.Second)
		began := time.Now()
		if err := lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		sleep(ttl - 100*time.Millisecond)
		giveUp()
		<-gaveUp
		s.awaitBetween(entered, began, ttl, ttl+10*time.Millisecond)
	})
}

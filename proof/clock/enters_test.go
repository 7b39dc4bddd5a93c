package clock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

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

package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// Trap 10: a latch was set, the answer got lost, and it opened before the request is sent again: it
// stays open, and the caller is told that it was set.
func TestLatchSetAnswerLost(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		if _, err := a.Latch("warm").Count(t.Context()); err == nil {
			t.Fatal("it is set")
		}
		a.DropAnswer("{l}")
		set := make(chan error, 1)
		go func() { set <- a.Latch("l").Set(t.Context(), 1) }()
		sleep(100 * time.Millisecond)
		fatal.If(t, b.Latch("l").CountDown(t.Context()))
		if err := <-set; err != nil {
			t.Errorf("Set: %v", err)
		}
		if n, err := b.Latch("l").Count(t.Context()); n != 0 || err != nil {
			t.Errorf("%d are to count down, %v: it was set anew", n, err)
		}
	})
}

// Trap 10: the answer to a count-down got lost, and the request is sent again: it counts once.
func TestLatchCountDownAnswerLost(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor("a")
		l := a.Latch("l")
		fatal.If(t, l.Set(t.Context(), 3))
		for left := 2; left >= 0; left-- {
			a.DropAnswer("{l}")
			fatal.If(t, l.CountDown(t.Context()))
			if n, err := l.Count(t.Context()); n != left || err != nil {
				t.Errorf("%d are to count down, %v: want %d", n, err, left)
			}
		}
	})
}

// A waiter of a latch is told when it opens, and does not find out when it looks again.
func TestLatchOpensAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		fatal.If(t, a.Latch("l").Set(t.Context(), 1))
		done := make(chan error, 1)
		go func() { done <- b.Latch("l").Wait(t.Context()) }()
		sleep(13 * time.Second)
		fatal.If(t, a.Latch("l").CountDown(t.Context()))
		opened := time.Now()
		if err := <-done; err != nil || time.Since(opened) > 0 {
			t.Errorf("told after %v, %v", time.Since(opened), err)
		}
	})
}

// Trap 29: a latch that lives for long and is counted down often remembers the id of a count-down
// for as long as a request with it may arrive, and a second more.
func TestLatchForgetsCountDowns(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const arrives, every, count = 2 * time.Second, 100 * time.Millisecond, 100
		a := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = arrives })
		l := a.Latch("l", holdfast.WithTTL(time.Minute))
		fatal.If(t, l.Set(t.Context(), 2*count))
		remembered := func() int64 { return s.rdb.ZCard(t.Context(), key("l")+":queue").Val() }
		for range count {
			fatal.If(t, l.CountDown(t.Context()))
			if n, most := remembered(), int64((arrives+time.Second)/every); n < 1 || n > most {
				t.Fatalf("%d ids are remembered, want at most %d", n, most)
			}
			sleep(every)
		}
		sleep(arrives + time.Second)
		if n := remembered(); n != 0 {
			t.Errorf("%d ids are remembered of requests that cannot arrive any more", n)
		}
		if n, err := l.Count(t.Context()); n != count || err != nil {
			t.Errorf("%d are to count down, %v: want %d", n, err, count)
		}
	})
}

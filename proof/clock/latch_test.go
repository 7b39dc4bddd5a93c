package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 10: a latch was set, the answer got lost, and it opened before the request is sent again: it
// stays open, and the caller is told that it was set.
func TestLatchSetAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { pass(time.Minute) })
		srv := embedded.Start(t)
		one, other := harness.Open(t, srv.Client(), nil), harness.Open(t, srv.Client(), nil)
		t.Cleanup(func() { one.Close(); other.Close() })
		if _, err := one.Latch("warm").Count(t.Context()); err == nil {
			t.Fatal("it is set")
		}
		srv.DropAnswer("{schema 7}")
		set := make(chan error, 1)
		go func() { set <- one.Latch("schema 7").Set(t.Context(), 1) }()
		pass(100 * time.Millisecond)
		if err := other.Latch("schema 7").CountDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-set; err != nil {
			t.Errorf("Set: %v", err)
		}
		if n, err := other.Latch("schema 7").Count(t.Context()); n != 0 || err != nil {
			t.Errorf("%d are to count down, %v: it was set anew", n, err)
		}
	})
}

// Trap 10: the answer to a count-down got lost, and the request is sent again: it counts once.
func TestLatchCountDownAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { pass(time.Minute) })
		srv := embedded.Start(t)
		c := harness.Open(t, srv.Client(), nil)
		t.Cleanup(func() { c.Close() })
		l := c.Latch("schema 7")
		if err := l.Set(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		for left := 2; left >= 0; left-- {
			srv.DropAnswer("{schema 7}")
			if err := l.CountDown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n, err := l.Count(t.Context()); n != left || err != nil {
				t.Errorf("%d are to count down, %v: want %d", n, err, left)
			}
		}
	})
}

// A waiter of a latch is told when it opens, and does not find out when it looks again.
func TestLatchOpensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { pass(time.Minute) })
		srv := embedded.Start(t)
		one, other := harness.Open(t, srv.Client(), nil), harness.Open(t, srv.Client(), nil)
		t.Cleanup(func() { one.Close(); other.Close() })
		if err := one.Latch("l").Set(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- other.Latch("l").Wait(t.Context()) }()
		pass(13 * time.Second)
		if err := one.Latch("l").CountDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		opened := time.Now()
		if err := <-done; err != nil || time.Since(opened) > 0 {
			t.Errorf("told after %v, %v", time.Since(opened), err)
		}
	})
}

// Trap 29: a latch that lives for long and is counted down often remembers the id of a count-down
// for as long as a request with it may arrive, and a second more.
func TestLatchForgetsCountDowns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { pass(time.Minute) })
		srv := embedded.Start(t)
		rdb := srv.Client()
		t.Cleanup(func() { rdb.Close() })
		const arrives, every, count = 2 * time.Second, 100 * time.Millisecond, 100
		c := harness.Open(t, srv.Client(), &holdfast.Config{ReleaseTimeout: arrives})
		t.Cleanup(func() { c.Close() })
		l := c.Latch("schema 7", holdfast.WithTTL(time.Minute))
		if err := l.Set(t.Context(), 2*count); err != nil {
			t.Fatal(err)
		}
		remembered := func() int64 { return rdb.ZCard(t.Context(), key("schema 7")+":queue").Val() }
		for range count {
			if err := l.CountDown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n, most := remembered(), int64((arrives+time.Second)/every); n < 1 || n > most {
				t.Fatalf("%d ids are remembered, want at most %d", n, most)
			}
			pass(every)
		}
		pass(arrives + time.Second)
		if n := remembered(); n != 0 {
			t.Errorf("%d ids are remembered of requests that cannot arrive any more", n)
		}
		if n, err := l.Count(t.Context()); n != count || err != nil {
			t.Errorf("%d are to count down, %v: want %d", n, err, count)
		}
	})
}

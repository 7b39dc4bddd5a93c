package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// clocked starts a master with a clock of its own.
func (r *rig) clocked() *redisserver.Clock {
	r.Helper()
	clock := redisserver.NewClock(r)
	r.add(clock.Start(r))
	return clock
}

// TestClocks: the clocks of two masters of five are ahead and behind, and then step while locks are
// held.
func TestClocks(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, by := range map[string]struct{ ahead, behind time.Duration }{
		"an hour": {time.Hour, -time.Hour},
		"decades": {100 * year, time.Until(time.Unix(1, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			r := newEmptyRig(t)
			ahead, behind := r.clocked(), r.clocked()
			r.start(3)
			ahead.Ahead(by.ahead)
			behind.Ahead(by.behind)
			r.found()
			holds := r.under([]*lag{nil, nil, nil, nil}, func() {
				r.pass(3 * time.Second)
				for range 3 {
					ahead.Ahead(0) // a step back
					r.pass(700 * time.Millisecond)
					behind.Ahead(by.ahead) // a step forward: what it kept is over
					r.pass(700 * time.Millisecond)
					ahead.Ahead(by.ahead)
					r.pass(700 * time.Millisecond)
					behind.Ahead(by.behind)
					r.pass(700 * time.Millisecond)
				}
			})
			t.Logf("%d holds\n%v", holds, r.check())
			if holds < 100 {
				t.Errorf("%d holds: too few to show anything", holds)
			}
		})
	}
}

// TestClockSetForward: the clock of a master that is needed for two majorities is set forward, so
// what it keeps is over there while the holder trusts it. A client that knew that clock before must
// not be let in by it.
func TestClockSetForward(t *testing.T) {
	r := newEmptyRig(t)
	clock := r.clocked()
	r.start(4).found()
	a, b := r.warm(nil), r.warm(nil)
	first := r.barely(a, "x")
	clock.Ahead(time.Hour)
	stranger := r.client(holdfast.Config{}, nil) // who never knew the clock
	told := false
	see := func() bool { told = told || r.count(stranger) == 4; return told }
	try := func() (in bool) {
		second, err := b.try("x")
		if err == nil {
			_ = second.Keep(10 * time.Millisecond)
			_ = second.GiveBack(releaseLimit)
		}
		return err == nil
	}
	for first.RecordTrust() == nil && !try() {
		see()
		r.pass(5 * time.Millisecond)
	}
	r.until("the master counts for nobody", func() bool { // an answer that did not come in time told b nothing
		try()
		return see()
	})
	_ = first.GiveBack(releaseLimit)
	_ = b.mustLock("x").GiveBack(releaseLimit)
	r.whole(stranger)
	r.check()
}

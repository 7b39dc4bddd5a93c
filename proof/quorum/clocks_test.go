package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// clocked starts a master with a clock of its own.
func (r *rig) clocked() *redisserver.Clock {
	r.Helper()
	clock := redisserver.NewClock(r)
	r.masters = append(r.masters, clock.Start(r))
	return clock
}

// TestClocks: the clocks of two masters are an hour ahead and an hour behind, and then step while locks are held.
func TestClocks(t *testing.T) {
	long(t)
	r := &rig{T: t, dir: t.TempDir()}
	ahead, behind := r.clocked(), r.clocked()
	for range 3 {
		r.masters = append(r.masters, redisserver.Start(t))
	}
	ahead.Ahead(time.Hour)
	behind.Ahead(-time.Hour)
	r.found()
	holds := r.under([]*lag{nil, nil, nil, nil}, func() {
		r.pass(3 * time.Second)
		for range 3 {
			ahead.Ahead(0) // a step back
			r.pass(700 * time.Millisecond)
			behind.Ahead(time.Hour) // two hours forward: what it kept is over
			r.pass(700 * time.Millisecond)
			ahead.Ahead(time.Hour)
			r.pass(700 * time.Millisecond)
			behind.Ahead(-time.Hour)
			r.pass(700 * time.Millisecond)
		}
	})
	t.Logf("%d holds\n%v", holds, r.check())
	if holds < 100 {
		t.Errorf("%d holds: too few to show anything", holds)
	}
}

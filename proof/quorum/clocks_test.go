package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// clocked starts a master with a clock of its own.
func (r *rig) clocked() *redisserver.Clock {
	r.Helper()
	clock := redisserver.NewClock(r)
	r.masters = append(r.masters, clock.Start(r))
	return clock
}

// TestClocks: the clocks of two masters of five are ahead and behind, and then step while locks are
// held.
func TestClocks(t *testing.T) {
	long(t)
	const year = 365 * 24 * time.Hour
	for name, by := range map[string]struct{ ahead, behind time.Duration }{
		"an hour": {time.Hour, -time.Hour},
		"decades": {100 * year, time.Until(time.Unix(1, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{T: t, dir: t.TempDir()}
			ahead, behind := r.clocked(), r.clocked()
			for range 3 {
				r.masters = append(r.masters, redisserver.Start(t))
			}
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

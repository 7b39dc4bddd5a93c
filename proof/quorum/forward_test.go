package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// TestClockSetForward: the clock of a master that is needed for two majorities is set forward, so what it keeps is over there
// while the holder trusts it. Whoever knew that clock before must not be let in by it.
func TestClockSetForward(t *testing.T) {
	r := &rig{T: t, dir: t.TempDir()}
	set := r.faked(0)
	t.Setenv("REDIS_SERVER", "")
	for range 4 {
		r.masters = append(r.masters, redisserver.Start(t))
	}
	r.reaches(0, set)
	r.found()
	a, b := r.client(nil, nil), r.client(nil, nil)
	warm(r, a)
	warm(r, b)
	first := r.barely(a, "x")
	set(time.Hour)
	stranger := r.client(nil, nil) // who never knew the clock
	for told := false; first.look() == nil; told = true {
		if second, err := b.try("x"); err == nil {
			_ = second.keep(10 * time.Millisecond)
			_ = second.release()
			break
		}
		if !told {
			r.until("the master counts for nobody", func() bool { return r.count(stranger.Client) == 4 })
		}
		r.pass(5 * time.Millisecond)
	}
	_ = first.release()
	second, err := b.lock("x", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.release()
	r.counting(stranger.Client, 5)
	r.check()
}

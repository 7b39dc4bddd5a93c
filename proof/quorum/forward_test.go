package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// TestClockSetForward: the clock of a master that is needed for two majorities is set forward, so
// what it keeps is over there while the holder trusts it. A client that knew that clock before must
// not be let in by it.
func TestClockSetForward(t *testing.T) {
	r := &rig{T: t, dir: t.TempDir()}
	clock := r.clocked()
	for range 4 {
		r.masters = append(r.masters, redisserver.Start(t))
	}
	r.found()
	a, b := r.client(nil, nil), r.client(nil, nil)
	warm(r, a)
	warm(r, b)
	first := r.barely(a, "x")
	clock.Ahead(time.Hour)
	stranger := r.client(nil, nil) // who never knew the clock
	told := false
	see := func() bool { told = told || r.count(stranger.Client) == 4; return told }
	try := func() (in bool) {
		second, err := b.try("x")
		if err == nil {
			_ = second.keep(10 * time.Millisecond)
			_ = second.release()
		}
		return err == nil
	}
	for first.look() == nil && !try() {
		see()
		r.pass(5 * time.Millisecond)
	}
	r.until("the master counts for nobody", func() bool { // an answer that did not come in time told b nothing
		try()
		return see()
	})
	_ = first.release()
	second, err := b.lock("x", patience)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.release()
	r.counting(stranger.Client, 5)
	r.check()
}

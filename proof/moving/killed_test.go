package moving

import (
	"testing"
	"time"
)

// A process of release N stands still between its two locks, or under both, for longer than both
// TTLs, and is killed with kill -9 then. Its locks are renewed until it is killed. Afterwards the
// others get in within the larger TTL. No two are ever inside together.
func TestKilledBetweenTheLocks(t *testing.T) {
	long(t)
	for _, library := range libraries {
		for _, beside := range []string{before, after} {
			for _, mark := range []string{holdfastHeld, bothHeld, oldReleased} {
				t.Run(library+"/"+mark+"/beside "+beside, func(t *testing.T) {
					t.Parallel()
					f := gather(t, library)
					reached := f.trap("1", mark)
					victim := f.start(between)
					select {
					case <-reached:
					case <-time.After(patience):
						t.Fatal("it does not get there")
					}
					inside := f.total()
					rival, next := f.start(beside), f.start(between)
					<-time.After(oldTTL + newTTL/2)
					// While the old lock is not held, release N-1 gets in.
					if n := f.visitsOf(next); n > 0 {
						t.Errorf("another process of N was inside %d times", n)
					}
					if n := f.visitsOf(rival); n > 0 && (beside == after || mark == bothHeld) {
						t.Errorf("a process of %s was inside %d times", beside, n)
					}
					killed := time.Now()
					f.end(victim, true)
					f.goesOn()
					took := time.Since(killed)
					if took > oldTTL+2*time.Second {
						t.Errorf("all were in three times after %v", took)
					}
					f.isExclusive(t)
					t.Logf("killed after %d visits; all others were inside three times %v later; overlaps: %d", inside,
						took.Round(100*time.Millisecond), f.overlapped())
				})
			}
		}
	}
}

package moving

import (
	"testing"
	"time"
)

// The deployments that the page forbids let two in, and that is seen: N-1 beside N+1, a release N
// that gives the old lock back before its work ends, and one that has the old lock alone.
func TestBrokenMovesAreSeen(t *testing.T) {
	long(t)
	for _, library := range libraries {
		for _, releases := range [][2]string{{before, after}, {before, oldEarly}, {withoutNew, after}} {
			t.Run(library+"/"+releases[0]+" beside "+releases[1], func(t *testing.T) {
				t.Parallel()
				f := gather(t, library)
				for _, release := range releases {
					f.start(release)
					f.start(release)
				}
				for late := time.After(patience); f.overlapped() == 0; {
					select {
					case <-late:
						t.Fatal("no two were inside together")
					case <-time.After(5 * time.Millisecond):
					}
				}
				t.Logf("two inside after %d visits: %s", f.total(), f.first())
			})
		}
	}
}

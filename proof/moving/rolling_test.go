package moving

import "testing"

// libraries are those that a Go service may come from.
var libraries = []string{"redsync", "redislock", "rueidislock", "etcd"}

// Three processes are replaced one by one: from N-1 to N, to N+1, and back again. Every other one
// is killed with kill -9 instead of being asked to end. No two are ever inside together.
func TestRolling(t *testing.T) {
	long(t)
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			f := gather(t, library)
			f.roll(3, f.start)
		})
	}
}

// roll replaces n members of N-1 by N, these by N+1, and goes back again. Every other one is
// killed.
func (f *fleet) roll(n int, start func(release string) *member) {
	f.Helper()
	for range n {
		start(before)
	}
	f.goesOn()
	killed := 0
	for step, release := range []string{between, after, between, before} {
		for i, m := range f.live[:n:n] {
			start(release)
			f.goesOn() // beside all others
			if kill := (i+step)%2 == 0; kill {
				killed++
				f.end(m, true)
			} else {
				f.end(m, false)
			}
		}
		f.goesOn()
	}
	for _, next := range [][2]string{{before, between}, {between, before}, {between, after}, {after, between}} {
		if f.passed[next] == 0 {
			f.Errorf("none of %s was inside right after one of %s", next[1], next[0])
		}
	}
	f.isExclusive(f.T)
	f.Logf("%d visits of %d members, %d of them killed; N-1 to N %d times, N to N-1 %d, N to N+1 %d, N+1 to N %d; "+
		"overlaps: %d",
		f.total(), f.count, killed, f.passed[[2]string{before, between}], f.passed[[2]string{between, before}],
		f.passed[[2]string{between, after}], f.passed[[2]string{after, between}], f.overlapped())
}

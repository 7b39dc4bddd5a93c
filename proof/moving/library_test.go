package moving

import (
	"context"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

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
					f.trap("1", mark)
					victim := f.start(between)
					f.await("it gets there", f.isTrapped)
					rival, next := f.start(beside), f.start(between)
					<-time.After(oldTTL + newTTL/2)
					f.staysOut(next)
					if beside == after || mark == bothHeld { // else the old lock is not held, and N-1 gets in
						f.staysOut(rival)
					}
					if took := f.killed(victim); took > oldTTL+2*time.Second {
						t.Errorf("all were in three times after %v", took)
					}
				})
			}
		}
	}
}

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
				f.await("two are inside together", func() bool { return f.overlapped() > 0 })
				t.Logf("two inside after %d visits", f.total())
			})
		}
	}
}

// startEtcd runs an etcd of one member until the test is over, and returns its address.
func startEtcd(t *testing.T) (addr string) {
	t.Helper()
	program, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("no etcd (Debian: etcd-server): %v", err)
	}
	addr = "127.0.0.1:" + freePort(t)
	client, peer := "http://"+addr, "http://127.0.0.1:"+freePort(t)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	answers := func(ctx context.Context) error {
		_, err := etcd.Get(ctx, "is it there?")
		return err
	}
	startServer(t, answers, program, "--data-dir", t.TempDir(), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	return addr
}

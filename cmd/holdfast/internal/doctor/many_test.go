package doctor

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestExamineCluster(t *testing.T) {
	long(t)
	servers := redisserver.StartTwoMasters(t)
	url := "redis+cluster://" + servers[0].Addr()
	report := examineServer(t, url)
	want(t, report, OK, "cluster", "all slots are served")
	want(t, report, Note, "cluster", "cluster-require-full-coverage is yes", "cluster-require-full-coverage no")
	want(t, report, Note, "replication", "no replica")
	want(t, report, Note, "fail-over", "cluster-node-timeout is 30000: a fail-over takes up to 47s", "--ttl 1m18s")
	want(t, report, OK, "lock", "hand-over")
	if n := len(findingsOf(report, OK, "messages")); n != 2 {
		t.Errorf("messages at %d masters, want 2:\n%s", n, lines(report))
	}
	for _, srv := range servers {
		if keys, err := srv.Do("KEYS", "*"); err != nil || len(keys.([]any)) > 0 {
			t.Errorf("left behind: %v, %v", keys, err)
		}
		if _, err := srv.Do("CONFIG", "SET", "cluster-require-full-coverage", "no"); err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Do("CLUSTER", "DELSLOTS", "0", "16001", "16002", "16383"); err != nil {
			t.Fatal(err)
		}
	}
	report = examineServer(t, url)
	want(t, report, Danger, "cluster", " 0, 16001-16002, 16383", "--cluster fix")
	want(t, report, OK, "cluster", "cluster-require-full-coverage is no")
}

// The sentinels say when they replace a master. The first of them is away.
func TestExamineSentinels(t *testing.T) {
	long(t)
	s := redisserver.StartSentinel(t)
	s.Patient()
	s.Sentinels()[0].Kill()
	url := "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.Name()
	report := examineServer(t, url)
	want(t, report, Note, "fail-over", "down-after-milliseconds is 30000: a fail-over takes up to 32s", "--ttl 54s")
	want(t, report, OK, "lock", "hand-over")
}

func TestExamineClusterMasterAway(t *testing.T) {
	long(t)
	servers := redisserver.StartTwoMasters(t)
	servers[1].Kill()
	want(t, examineServer(t, "redis+cluster://"+servers[0].Addr()), Danger, "cluster", "no answer")
}

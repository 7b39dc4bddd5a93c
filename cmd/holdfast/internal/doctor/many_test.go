package doctor

import (
	"context"
	"net"
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

// startQuorum starts three masters, each reachable by an address of its own.
func startQuorum(t *testing.T, opts ...string) (servers []*redisserver.Server, urls []string) {
	t.Helper()
	for _, host := range []string{"127.0.0.3", "127.0.0.4", "127.0.0.5"} {
		l, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Skip("the machine has one loopback address: ", err)
		}
		l.Close()
		srv := redisserver.Start(t, append([]string{"--bind", "127.0.0.1", host}, opts...)...)
		servers = append(servers, srv)
		urls = append(urls, "redis://"+strings.Replace(srv.Addr(), "127.0.0.1", host, 1))
	}
	return servers, urls
}

func TestExamineQuorum(t *testing.T) {
	long(t)
	servers, urls := startQuorum(t)
	report := examineServer(t, "quorum:"+strings.Join(urls, ","))
	want(t, report, Danger, "quorum", "node 1 does not count", "--trust-new-nodes")
	want(t, report, Danger, "quorum", "0 of 3 masters count")
	want(t, report, OK, "lock", "hand-over")
	want(t, report, Note, "persistence", "appendonly yes")
	wantNone(t, report, Danger, "persistence")
	wantNone(t, report, Danger, "replication")
	if len(findingsOf(report, Danger, "quorum", "on the host of")) > 0 {
		t.Errorf("hosts:\n%s", lines(report))
	}
	for _, srv := range servers {
		keys, err := srv.Do("KEYS", "*doctor*")
		if list, _ := keys.([]any); err != nil || len(list) > 0 {
			t.Errorf("left behind: %v, %v", keys, err)
		}
	}
	servers[2].Kill()
	report = examineServer(t, "quorum:"+strings.Join(urls, ","))
	want(t, report, Danger, "quorum", "no answer", "start it")
	servers[0].Kill()
	servers[1].Kill()
	if _, err := Examine(context.Background(),
		Target{URL: "quorum:" + strings.Join(urls, ","), Prefix: "app"}); err == nil || isAnswer(err) {
		t.Errorf("all away: %v", err)
	}
}

// One server that is given twice has two votes.
func TestExamineQuorumTwins(t *testing.T) {
	long(t)
	_, urls := startQuorum(t)
	twin := strings.Replace(urls[0], "127.0.0.3", "127.0.0.1", 1)
	report := examineServer(t, "quorum:"+strings.Join([]string{urls[0], twin, urls[1]}, ","))
	want(t, report, Danger, "quorum", "the same server as")
	if twice := findingsOf(report, Danger, "quorum", "same server as node"); len(twice) > 0 {
		t.Errorf("told twice: %v", twice)
	}
	neighbor := redisserver.Start(t)
	report = examineServer(t, "quorum:"+strings.Join([]string{twin, "redis://" + neighbor.Addr(), urls[2]}, ","))
	want(t, report, Danger, "quorum", "on the host of")
}

// A master of a quorum that replicates would be replaced by one that has forgotten.
func TestExamineQuorumReplica(t *testing.T) {
	long(t)
	master, _ := redisserver.StartReplicated(t, 1)
	_, urls := startQuorum(t)
	urls[0] = "redis://" + master.Addr()
	want(t, examineServer(t, "quorum:"+strings.Join(urls, ",")), Danger, "replication", "1 replica follows this master")
}

package main

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func startMasters(t *testing.T) (masters []*redisserver.Server, urls []string) {
	t.Helper()
	for range 3 {
		master := redisserver.Start(t)
		masters, urls = append(masters, master), append(urls, "redis://"+master.Addr())
	}
	return masters, urls
}

// New masters are young until they are trusted, and a command runs under the lock of a majority.
func TestQuorum(t *testing.T) {
	long(t)
	t.Setenv("REDIS_URL", "")
	masters, urls := startMasters(t)
	flags := []string{"--redis", urls[0], "--redis", urls[1], "--redis", urls[2]}
	status := append([]string{"quorum", "status"}, flags...)
	under := append(append([]string{"run"}, flags...), "x", "--", "true")
	expectRun(t, 69, status, "node 1", "young", "it counts in", "no majority: 0 of 3")
	expectRun(t, 69, under, "does not count")
	expectRun(t, 0, append(status, "--trust-new-nodes"), "counts")
	expectRun(t, 0, status, "counts")
	proxy := fault.Start(t, masters[0].Addr())
	twins := []string{"quorum", "status", flags[0], flags[1], "--redis", "redis://" + proxy.Addr(), flags[2], flags[3]}
	expectRun(t, 0, twins, "twin", "it is the same server as node ")
	masters[1].Kill()
	expectRun(t, 0, status, "away")
	expectRun(t, 0, under)
	masters[2].Kill()
	expectRun(t, 69, status, "no majority: 1 of 3")
}

// Of a quorum, the commands show what each master says, and the verdict.
func TestSeeAQuorum(t *testing.T) {
	long(t)
	masters, urls := startMasters(t)
	t.Setenv("REDIS_URL", server.Quorum(urls))
	client := newClient(t, server.Quorum(urls), holdfast.Config{Label: "web@a", TrustNewNodes: true})
	if _, err := client.Quorum(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := client.Mutex("job").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expectRun(t, 0, []string{"inspect", "job"}, "node 1  yes     held: web@a, token ",
		"verdict: held, by 3 of 3 masters that count")
	expectRun(t, 0, []string{"inspect", "-o", "json", "job"}, `"masters": \[`, `"node": "node 3",`, `"counts": true`)
	expectRun(t, 0, []string{"ls"}, "job   mutex  held   web@a")
	masters[2].Kill()
	expectRun(t, 0, []string{"inspect", "job"}, "node 3  no      ", "verdict: held, by 2 of 3 masters that count")
	expectRun(t, 0, []string{"ls", "--sort", "age"}, "job   mutex  held   web@a") // top looks as this does
	expectRun(t, 1, []string{"break", "job", "--token", "1"}, "nothing was broken")
	expectRun(t, 0, []string{"break", "job", "--token", fmt.Sprint(lease.Token())}, "broken: job")
	<-lease.Done()
	masters[1].Kill()
	expectRun(t, 0, []string{"inspect", "job"}, "verdict: none, 1 of 3 masters count, 2 are needed")
	expectRun(t, 69, []string{"ls"}, "holdfast: ")
	expectRun(t, 69, []string{"break", "job", "--token", fmt.Sprint(lease.Token())}, "holdfast: ")
}

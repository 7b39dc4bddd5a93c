package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// long skips a test that examines a server, which takes seconds: make proof runs it, beside others.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("long: only with HOLDFAST_PROOF=1")
	}
	t.Parallel()
}

// durable are the options of a server to which there is nothing to say.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// examineServer examines a server, and checks what must always hold.
func examineServer(t *testing.T, url string) Report {
	t.Helper()
	report, err := Examine(context.Background(), Target{URL: url, Prefix: "app", TTL: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if report.Version != 1 || report.Endangered != (report.Count(Danger)+report.Count(Unknown) > 0) {
		t.Errorf("version %d, endangered %v: %v", report.Version, report.Endangered, report.Findings)
	}
	for _, f := range report.Findings {
		if f.Level == "" || f.Check == "" || f.Server == "" || f.Found == "" {
			t.Errorf("an incomplete finding: %+v", f)
		}
		if f.Level == Danger && (f.Means == "" || f.Change == "") {
			t.Errorf("a danger without its meaning or its cure: %+v", f)
		}
	}
	return report
}

func urlOf(srv *redisserver.Server) string { return "redis://" + srv.Addr() }

func findingsOf(report Report, level Level, check string, words ...string) (found []Finding) {
	for _, f := range report.Findings {
		text := f.Found + " " + f.Change
		if f.Level == level && f.Check == check &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			found = append(found, f)
		}
	}
	return found
}

func want(t *testing.T, report Report, level Level, check string, words ...string) {
	t.Helper()
	if len(findingsOf(report, level, check, words...)) == 0 {
		t.Errorf("no %s of %s with %q in:\n%s", level, check, words, lines(report))
	}
}

func wantNone(t *testing.T, report Report, level Level, check string) {
	t.Helper()
	if found := findingsOf(report, level, check); len(found) > 0 {
		t.Errorf("%s of %s: %v", level, check, found)
	}
}

func lines(report Report) string {
	var out strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintln(&out, f.Level, f.Check, f.Server, f.Found, "|", f.Change)
	}
	return out.String()
}

// The probes leave nothing behind, and touch no key but their own, also if they are interrupted.
func TestExamineLeavesNothing(t *testing.T) {
	long(t)
	srv := redisserver.Start(t, durable...)
	foreign := map[string]string{"app:{job}": "x", "app": "y", "app:doctor-": "z", "app:doctor-abc:{probe}": "u",
		"other": "v"}
	for key, value := range foreign {
		if _, err := srv.Do("SET", key, value); err != nil {
			t.Fatal(err)
		}
	}
	alone := func() {
		t.Helper()
		keys, err := srv.Do("KEYS", "*")
		if list, _ := keys.([]any); err != nil || len(list) != len(foreign) {
			t.Errorf("%v keys, %v; want %d", keys, err, len(foreign))
		}
		for key, value := range foreign {
			if got, err := srv.Do("GET", key); got != value {
				t.Errorf("%s: %v, %v; want %s", key, got, err, value)
			}
		}
	}
	examineServer(t, urlOf(srv))
	alone()
	for _, at := range []string{"WHOAMI", ":clock", ":queue"} {
		ctx, cancel := context.WithCancel(context.Background())
		proxy := fault.Start(t, srv.Addr())
		held := proxy.HoldRequest(at)
		over := make(chan struct{})
		var interrupt sync.WaitGroup
		interrupt.Go(func() {
			select {
			case <-held.Arrived():
				cancel()
				held.Pass()
			case <-over:
			}
		})
		_, err := Examine(ctx, Target{URL: "redis://" + proxy.Addr(), Prefix: "app"})
		if err == nil || ctx.Err() == nil {
			t.Errorf("interrupted at %s: %v, %v", at, err, ctx.Err())
		}
		close(over)
		interrupt.Wait()
		cancel()
		alone()
	}
}

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

func TestExamineDatabasesOfACluster(t *testing.T) {
	long(t)
	value, err := redisserver.Start(t).Do("CONFIG", "GET", "cluster-databases")
	if err != nil || len(value.([]any)) == 0 {
		t.Skip("the server has no cluster-databases, which Valkey has from 9.0 on")
	}
	srv := redisserver.Start(t, "--cluster-enabled", "yes", "--cluster-databases", "4")
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	p := &serverCheck{name: "s", rdb: rdb}
	p.databases(t.Context())
	wantOne(t, "four", p, Note, "cluster-databases is 4")
}

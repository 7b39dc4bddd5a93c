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

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
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

// findingsOf returns the findings of a check that are of a level and contain all words.
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

// want checks that there is such a finding.
func want(t *testing.T, report Report, level Level, check string, words ...string) {
	t.Helper()
	if len(findingsOf(report, level, check, words...)) == 0 {
		t.Errorf("no %s of %s with %q in:\n%s", level, check, words, lines(report))
	}
}

// wantNone checks that no finding of a check is of a level.
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

// A machine that stands still may make a clock look wrong or an answer late. All else must be fine.
func TestExamineDurableServer(t *testing.T) {
	long(t)
	report := examineServer(t, urlOf(redisserver.Start(t, durable...)))
	for _, check := range []string{"version", "eviction", "memory", "persistence", "replication", "permissions",
		"messages", "lock"} {
		wantNone(t, report, Danger, check)
		wantNone(t, report, Unknown, check)
	}
	want(t, report, OK, "eviction", "noeviction")
	want(t, report, OK, "persistence", "always")
	want(t, report, OK, "permissions", "all ")
	want(t, report, OK, "messages", "reached")
	if !slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Check == "clock" }) {
		t.Error("the clock was not looked at")
	}
	want(t, report, OK, "lock", "acquire and release: p50", "hand-over: p50", "SET NX PX and DEL: p50")
}

// Trap 42: a server that evicts drops locks. Trap 44: without AOF a restart loses every lock.
func TestExamineSettings(t *testing.T) {
	long(t)
	const evictsNothing = "maxmemory-policy noeviction"
	for options, c := range map[string]struct {
		level Level
		check string
		words []string
	}{
		"":                                  {Danger, "persistence", []string{"no snapshots", "appendonly yes"}},
		"--save|60 1":                       {Danger, "persistence", []string{"save 60 1"}},
		"--appendonly|yes":                  {Note, "persistence", []string{"everysec"}},
		"--appendonly|yes|--appendfsync|no": {Danger, "persistence", []string{"appendfsync everysec"}},
		"--maxmemory|50mb|--maxmemory-policy|allkeys-lru": {Danger, "eviction",
			[]string{"allkeys-lru", evictsNothing}},
		"--maxmemory|50mb|--maxmemory-policy|volatile-lru": {Danger, "eviction",
			[]string{"volatile-lru", evictsNothing}},
		"--maxmemory|50mb|--maxmemory-policy|volatile-ttl": {Danger, "eviction",
			[]string{"volatile-ttl", evictsNothing}},
		"--maxmemory-policy|allkeys-lru": {Note, "eviction", []string{"maxmemory is 0"}},
	} {
		words := strings.FieldsFunc(options, func(r rune) bool { return r == '|' })
		report := examineServer(t, urlOf(redisserver.Start(t, words...)))
		want(t, report, c.level, c.check, c.words...)
		if c.level == Note {
			wantNone(t, report, Danger, c.check)
		}
	}
}

func TestExamineFullServer(t *testing.T) {
	long(t)
	srv := redisserver.Start(t, durable...)
	if _, err := srv.Do("CONFIG", "SET", "maxmemory", "1000"); err != nil {
		t.Fatal(err)
	}
	report := examineServer(t, urlOf(srv))
	want(t, report, Danger, "memory", "in use", "maxmemory ")
	want(t, report, Danger, "lock", "no lock could be taken")
}

// A service that forbids CONFIG and INFO gets "unknown" with the reason, never "ok".
func TestExamineManagedServer(t *testing.T) {
	long(t)
	srv := redisserver.Start(t, append(slices.Clone(durable), "--rename-command", "CONFIG", "", "--rename-command",
		"ACL", "")...)
	report := examineServer(t, urlOf(srv))
	want(t, report, OK, "eviction")
	want(t, report, Note, "persistence", "appendfsync is not told")
	want(t, report, Note, "io-threads", "unknown command")
	want(t, report, OK, "permissions", "by trying")

	srv = redisserver.Start(t, durable...)
	if _, err := srv.Do("ACL", "SETUSER", "u", "reset", "on", ">pw", "~app:*", "resetchannels", "&app:*", "+@all",
		"-info", "-config", "-acl"); err != nil {
		t.Fatal(err)
	}
	report = examineServer(t, "redis://u:pw@"+srv.Addr())
	for _, check := range []string{"version", "eviction", "memory", "persistence", "replication"} {
		want(t, report, Unknown, check, "not told")
		wantNone(t, report, OK, check)
	}
	want(t, report, Note, "permissions", "refused: info", "+info")
	want(t, report, OK, "lock")
	if !report.Endangered {
		t.Error("what is unknown is taken for safe")
	}
}

// The server of holdfast dev tells nothing of itself. The findings say why that is no matter.
func TestExamineServerForTrials(t *testing.T) {
	long(t)
	trial, err := server.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trial.Stop() })
	report := examineServer(t, trial.URL)
	want(t, report, Unknown, "eviction", "holdfast dev")
	want(t, report, OK, "lock")
}

func TestExamineReplicas(t *testing.T) {
	long(t)
	master, replicas := redisserver.StartReplicated(t, 1, durable...)
	report := examineServer(t, urlOf(master))
	for len(findingsOf(report, Note, "replication", "1 of 1 replicas confirmed")) == 0 {
		// A replica has a second to confirm, which a busy machine may need more than once.
		report = examineServer(t, urlOf(master))
	}
	want(t, report, Note, "replication", "min-replicas-to-write is 0", "min-replicas-to-write 1")
	want(t, report, Note, "replication", "1 of 1 replicas confirmed", "Config.Replicas")

	report = examineServer(t, urlOf(replicas[0]))
	want(t, report, Danger, "replication", "this is a replica", "name the master")

	replicas[0].Stop()
	defer replicas[0].Continue()
	report = examineServer(t, urlOf(master))
	want(t, report, Danger, "replication", "no replica confirmed")
	if _, err := master.Do("CONFIG", "SET", "min-replicas-to-write", "2"); err != nil {
		t.Fatal(err)
	}
	report = examineServer(t, urlOf(master))
	want(t, report, Danger, "replication", "min-replicas-to-write is 2, and 1 replica follows")
}

// A replica confirms every second: to be late takes seconds.
func TestExamineLateReplica(t *testing.T) {
	long(t)
	master, replicas := redisserver.StartReplicated(t, 1, durable...)
	want(t, examineServer(t, urlOf(master)), OK, "replica lag", "in step")
	replicas[0].Stop()
	defer replicas[0].Continue()
	for late := false; !late; {
		text, _ := master.Do("INFO", "replication")
		info := infoText{}
		info.read(text.(string))
		for _, r := range info.replicas() {
			late = r.lag >= lateReplica
		}
	}
	want(t, examineServer(t, urlOf(master)), Danger, "replica lag", "confirmed nothing")
}

// A proxy that carries requests and no messages.
func TestExamineProxyWithoutMessages(t *testing.T) {
	long(t)
	srv := redisserver.Start(t, durable...)
	proxy := fault.Start(t, srv.Addr())
	lost := proxy.SwallowAnswer("message")
	report := examineServer(t, "redis://"+proxy.Addr())
	<-lost
	want(t, report, Note, "messages", "no message reached", "no answer in time", "proxy")
	wantNone(t, report, OK, "messages")
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

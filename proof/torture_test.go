package proof

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/proof/leak"
	"github.com/holdfast-go/holdfast/proof/workload"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

func TestMain(m *testing.M) {
	// The workers of a run are this very program.
	if plan, ok, err := workload.PlanFromEnv(); ok {
		if err == nil {
			err = workload.Worker(plan)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := leak.Check(5 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestTorture is 8 processes on few names for 3 s, 10 s with HOLDFAST_CHECK=1, or HOLDFAST_TORTURE_SECONDS. HOLDFAST_SEED
// repeats the decisions of a run. The history of a run that failed is kept.
func TestTorture(t *testing.T) {
	seconds := 3
	if os.Getenv("HOLDFAST_CHECK") == "1" {
		seconds = 10
	}
	seconds = int(number(t, "HOLDFAST_TORTURE_SECONDS", uint64(seconds)))
	seed := number(t, "HOLDFAST_SEED", rand.Uint64())
	t.Logf("%d s, HOLDFAST_SEED=%d", seconds, seed)

	dir, err := os.MkdirTemp("", "holdfast-history-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the history is in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	server := redisserver.Start(t)
	run := workload.Run{
		Plan: workload.Plan{
			Addr: server.Addr(), Dir: dir, Goroutines: 3, Names: workload.EveryType(), Prefix: "torture", Seed: seed,
		},
		Command: func() *exec.Cmd { return exec.Command(os.Args[0]) },
		Faults:  true, For: time.Duration(seconds) * time.Second, Procs: 8, Server: server,
	}
	report, err := run.Do(t.Context())
	t.Logf("%v", report)
	if err != nil {
		t.Errorf("%v", err)
	}
	for i, v := range report.Violations {
		if i == 20 {
			t.Errorf("and %d violations more", len(report.Violations)-i)
			break
		}
		t.Errorf("violation %v", v)
	}
	for _, text := range append(report.Rest.Leaked, report.Rest.Forever...) {
		t.Errorf("violation left: %s", text)
	}
	// A run in which little happened shows nothing, however busy the machine.
	if least := 5 * seconds; report.Holds < least {
		t.Errorf("%d holds, want at least %d", report.Holds, least)
	}
}

// number is the value of an environment variable, or else.
func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

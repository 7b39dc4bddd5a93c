package proof

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/linear"
	"github.com/holdfast-go/holdfast/proof/workload"
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
	os.Exit(leak.Main(m))
}

// TestTorture is 8 processes on few names of every type for HOLDFAST_TORTURE_SECONDS, or 10 s with
// HOLDFAST_PROOF=1. HOLDFAST_SEED repeats the decisions of a run. The history of a run that failed
// is kept.
func TestTorture(t *testing.T) {
	seconds := int(harness.Number(t, "HOLDFAST_TORTURE_SECONDS", 0))
	if seconds == 0 {
		harness.Long(t)
		seconds = 10
	}
	server := redisserver.Start(t)
	run := workload.Run{
		Plan: workload.Plan{Addr: server.Addr(), Goroutines: 3, Names: workload.EveryType(), Prefix: "torture"},
		For:  time.Duration(seconds) * time.Second, Procs: 8, Server: server,
	}
	run.Seed = harness.Number(t, "HOLDFAST_SEED", rand.Uint64())
	t.Logf("%v, HOLDFAST_SEED=%d", run.For, run.Seed)
	var err error
	if run.Dir, err = os.MkdirTemp("", "holdfast-history-"); err != nil {
		t.Fatal(err)
	}
	run.Command = func() *exec.Cmd { return exec.Command(os.Args[0]) }
	report, err := run.Do(t.Context())
	t.Logf("%v", report)
	if err != nil {
		t.Errorf("%v", err)
	}
	for _, text := range report.Broken() {
		t.Error(text)
	}
	if report.History != nil {
		verdict := linear.Check(report.History, 2*time.Second)
		t.Logf("model: %v", verdict)
		for _, name := range verdict.Broken {
			t.Errorf("violation model: %q: no order of what happened explains its holds", name)
		}
	}
	// A run in which little happened shows nothing, however busy the machine.
	if least := 5 * seconds; report.Holds < least {
		t.Errorf("%d holds, want at least %d", report.Holds, least)
	}
	if t.Failed() {
		t.Logf("the history is in %s", run.Dir)
	} else if err := os.RemoveAll(run.Dir); err != nil {
		t.Error(err)
	}
}

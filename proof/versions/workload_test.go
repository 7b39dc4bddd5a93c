package versions

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
	"github.com/holdfast-go/holdfast/proof/workload"
)

// Processes of both versions use names of every type for 20 s, while processes are killed, stopped
// and cut off. A process that was killed comes back as the other version. HOLDFAST_SEED repeats the
// decisions.
func TestVersionsInOneWorkload(t *testing.T) {
	now, earlier := buildBoth(t, true)
	seed := harness.Number(t, "HOLDFAST_SEED", rand.Uint64())
	t.Logf("HOLDFAST_SEED=%d", seed)
	server := redisserver.Start(t)
	var started atomic.Int64
	run := workload.Run{
		Plan: workload.Plan{
			Addr: server.Addr(), Dir: t.TempDir(), Goroutines: 3, Names: workload.EveryType(), Prefix: "versions",
			Seed: seed,
		},
		Command: func() *exec.Cmd {
			if started.Add(1)%2 == 0 {
				return exec.Command(earlier.worker)
			}
			return exec.Command(now.worker)
		},
		For: 20 * time.Second, Procs: 8, Server: server,
	}
	report, err := run.Do(t.Context())
	t.Logf("%d processes, every second one of the earlier version\n%v", started.Load(), report)
	if err != nil {
		t.Error(err)
	}
	// The earlier version changes the number of permits, and this history knows of one alone.
	report.Violations = slices.DeleteFunc(report.Violations, func(v history.Violation) bool {
		return v.Rule == judge.Permits
	})
	for _, text := range report.Broken() {
		t.Error(text)
	}
	if report.Holds < 100 {
		t.Errorf("%d holds, want at least 100: a run in which little happened shows nothing", report.Holds)
	}
}

package simulate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// TestMain lets one goroutine run at a time, which is what makes a run nearly the same each time;
// two cores are used by processes.
func TestMain(m *testing.M) {
	harness.Quiet()
	// miniredis makes a Lua machine for each script; with stacks that suffice for ours one costs a
	// sixth less. A script that outgrew them would fail with an error, which is a violation.
	lua.RegistrySize, lua.CallStackSize = 1024, 64
	runtime.GOMAXPROCS(1)
	os.Exit(leak.Main(m))
}

// shorten returns a quarter of an hour of a plan, or all of it with HOLDFAST_PROOF=1.
func shorten(p Plan) Plan {
	if harness.Thorough {
		return p
	}
	return p.Until(15 * time.Minute)
}

// TestUndisturbed makes runs of clients that come, wait, give up and crash, without faults between
// them and the server: one, or two with HOLDFAST_PROOF=1.
func TestUndisturbed(t *testing.T) {
	runs := 1
	if harness.Thorough {
		runs = 2
	}
	for seed := uint64(1000); runs > 0; seed++ {
		if plan := Draw(seed); plan.Mode == Calm {
			runs--
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { checkResult(t, Run(t, shorten(plan))) })
		}
	}
}

// TestSimulate makes HOLDFAST_RUNS runs from HOLDFAST_SEED on, or from a random one: one seed a
// run, in as many processes as there are cores. With HOLDFAST_QUORUM they are over a quorum. With
// HOLDFAST_PROOF=1 alone it makes a few, always the same, which the race detector sees.
func TestSimulate(t *testing.T) {
	few, first := uint64(0), rand.Uint64N(1e9)
	if harness.Thorough && os.Getenv("HOLDFAST_RUNS") == "" {
		few, first = 4, 51
	}
	runs := int(harness.Number(t, "HOLDFAST_RUNS", few))
	if runs == 0 {
		t.Skip("with faults, for as long as one likes: make simulate RUNS=n")
	}
	from := harness.Number(t, "HOLDFAST_SEED", first)
	if os.Getenv("HOLDFAST_SIMULATE") == "1" { // a child
		draw := Draw
		if os.Getenv("HOLDFAST_QUORUM") != "" {
			draw = DrawQuorum
		}
		for seed := range uint64(runs) {
			r := Run(t, draw(from+seed))
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("ran %s\n", text)
			checkResult(t, r)
			if os.Getenv("HOLDFAST_HISTORY") == "1" {
				fmt.Print(r.History())
			}
		}
		return
	}
	// Portions are short, so that what a run leaves in memory does not add up.
	portion := min(50, (runs+1)/2)
	portions := make(chan int, runs)
	for first := 0; first < runs; first += portion {
		portions <- first
	}
	close(portions)
	var (
		works sync.WaitGroup
		mu    sync.Mutex
		done  int
		sum   = map[string]int{}
		began = time.Now()
	)
	for range runtime.NumCPU() {
		works.Go(func() {
			for begun := range portions {
				first, n := from+uint64(begun), min(portion, runs-begun)
				lines, err := runChild(t, first, n)
				mu.Lock()
				for _, line := range lines {
					var r Result
					if text, ran := strings.CutPrefix(line, "ran "); ran && json.Unmarshal([]byte(text), &r) == nil {
						done++
						sum["operations"] += r.Ops
						for what, n := range r.Counts {
							sum[what] += n
						}
					}
				}
				if err != nil {
					t.Errorf("runs from SEED=%d on: %v\n%s", first, err, strings.Join(failureLines(lines), "\n"))
				} else if done/100 > (done-n)/100 {
					t.Logf("%d runs in %v", done, time.Since(began).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	works.Wait()
	took := time.Since(began)
	t.Logf("SEED=%d: %d runs of an hour in %v, %.0f a minute: %d operations, %d holds, %d of them lost and told, %d "+
		"faults, %d holds broken, %d of them as they were handed over",
		from, done, took.Round(time.Second), float64(done)/took.Minutes(), sum["operations"], sum["got"], sum["lost"],
		sum["fault"],
		sum["break"]+sum["break of a hand-over"], sum["break of a hand-over"])
	if done != runs {
		t.Errorf("%d runs of %d came to their end", done, runs)
	}
}

// runChild makes runs in another process, and returns what it printed.
func runChild(t *testing.T, from uint64, runs int) ([]string, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSimulate$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), "HOLDFAST_SIMULATE=1", "HOLDFAST_SEED="+strconv.FormatUint(from, 10),
		"HOLDFAST_RUNS="+strconv.Itoa(runs), "GOGC=off", "GOMEMLIMIT=400MiB")
	out, err := cmd.CombinedOutput()
	return strings.Split(string(out), "\n"), err
}

// failureLines returns what of a failed child's output is worth reading: each violation, and why
// the process ended.
func failureLines(lines []string) (bad []string) {
	for i, line := range lines {
		switch {
		case strings.Contains(line, "violation "), strings.HasPrefix(line, "panic: "):
			bad = append(bad, lines[i:min(i+12, len(lines))]...)
		case strings.HasPrefix(line, "fatal error: "):
			bad = append(bad, lines[i:min(i+60, len(lines))]...)
		}
	}
	if bad == nil {
		return lines[max(0, len(lines)-60):]
	}
	return bad
}

func checkResult(t *testing.T, r Result) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("SEED=%d, %s: violation %v", r.Seed, r.Mode, v)
	}
	least := 80
	if harness.Thorough {
		least = 500
	}
	if r.Ops < least {
		t.Errorf("SEED=%d: %d operations", r.Seed, r.Ops)
	}
}

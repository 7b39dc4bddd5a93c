package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/harness"
)

func TestMain(m *testing.M) {
	harness.Quiet()
	if os.Getenv(childEnv) != "" {
		if err := runChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // topologies beside each other: most of the time is waiting
	os.Exit(leak.Main(m))
}

// times returns how much of everything is wanted.
func times(t *testing.T) int {
	t.Helper()
	return int(max(1, harness.Number(t, "HOLDFAST_FAULTS", 1)))
}

func pause(d time.Duration) { <-time.After(d) }

// repeat does something again and again until it is stopped, and says how often.
func repeat(d time.Duration, f func()) (stop func() int) {
	over, done, n := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				f()
				n++
			}
		}
	}()
	return func() int { close(over); <-done; return n }
}

// Package leak finds goroutines that a test left behind (trap 33).
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines may take to end: connections close, and requests that nobody
// waits for run out.
const patience = 30 * time.Second

// Watch remembers the goroutines that there are. Left gives those time to end that have started
// since, and returns the stacks of the ones that did not.
func Watch() (left func() string) {
	before := stacks()
	return func() string { return since(before) }
}

// Check fails the test when goroutines that started after this call are left at its end. A function
// that is registered with Cleanup after Check runs before it looks. Tests that run in parallel see
// each other's goroutines.
func Check(tb testing.TB) {
	tb.Helper()
	left := Watch()
	tb.Cleanup(func() {
		tb.Helper()
		if left := left(); left != "" {
			tb.Errorf("goroutines left behind:\n\n%s", left)
		}
	})
}

// Main is for TestMain: it runs the tests and returns the exit code, which is not 0 when goroutines
// are left.
func Main(m *testing.M) int {
	left := Watch()
	code := m.Run()
	if code == 0 {
		if left := left(); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines left behind:\n\n%s\n", left)
			code = 1
		}
	}
	return code
}

// stacks has the stack of each goroutine by its first words, "goroutine 17".
func stacks() map[string]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := make(map[string]string)
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		all[id] = stack
	}
	return all
}

// since returns the stacks of goroutines that were not there before and do not end soon.
func since(before map[string]string) string {
	late := time.After(patience)
	for {
		var left []string
		for id, stack := range stacks() {
			// os/signal keeps its goroutine for ever, by design; go test asks for signals when it
			// fuzzes.
			if before[id] == "" && !strings.Contains(stack, "internal/testing/leak.stacks") &&
				!strings.Contains(stack, "os/signal.signal_recv") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		select {
		case <-late:
			return strings.Join(left, "\n\n")
		case <-time.After(time.Millisecond):
		}
	}
}

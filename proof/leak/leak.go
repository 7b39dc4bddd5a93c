// Package leak finds goroutines that were left behind.
package leak

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// Check waits up to within for all goroutines but the caller's and the runtime's own to end, and returns an error that
// shows those that did not.
func Check(within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		left := others()
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines left behind:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func others() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var left []string
	for i, stack := range strings.Split(string(buf), "\n\n") {
		// The first is the caller. os/signal keeps its goroutine for ever, by design.
		if i > 0 && !strings.Contains(stack, "os/signal.loop") && !strings.Contains(stack, "os/signal.signal_recv") {
			left = append(left, strings.TrimSpace(stack))
		}
	}
	return left
}

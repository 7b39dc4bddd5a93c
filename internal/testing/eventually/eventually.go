// Package eventually waits in tests for what must come to hold, and has no other sign.
package eventually

import (
	"testing"
	"time"
)

// Holds reports whether a condition comes to hold within a time. It looks often at first, and then
// every 20 ms: a look may ask a server.
func Holds(within time.Duration, condition func() bool) bool {
	late := time.After(within)
	for pause := 2 * time.Millisecond; !condition(); pause = min(2*pause, 20*time.Millisecond) {
		select {
		case <-late:
			return condition()
		case <-time.After(pause):
		}
	}
	return true
}

// Must ends the test unless a condition comes to hold within a time.
func Must(tb testing.TB, within time.Duration, what string, condition func() bool) {
	tb.Helper()
	if !Holds(within, condition) {
		tb.Fatalf("not within %v: %s", within, what)
	}
}

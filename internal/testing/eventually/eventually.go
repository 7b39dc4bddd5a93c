// Package eventually waits in tests for what must come to hold, and has no other sign.
package eventually

import (
	"testing"
	"time"
)

// Holds reports whether a condition comes to hold within a time.
func Holds(within time.Duration, condition func() bool) bool {
	late := time.After(within)
	for !condition() {
		select {
		case <-late:
			return condition()
		case <-time.After(2 * time.Millisecond):
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

package protocol

import (
	"context"
	"time"
)

// NewTimer is time.NewTimer for at least a nanosecond. A timer whose time is over is run by the
// goroutine that reads it. In a bubble of synctest the race detector of Go 1.26 does not survive
// two of these at one moment.
func NewTimer(d time.Duration) *time.Timer { return time.NewTimer(max(d, 1)) }

// ResetTimer is Reset as NewTimer is time.NewTimer.
func ResetTimer(timer *time.Timer, d time.Duration) { timer.Reset(max(d, 1)) }

// Pause waits for d. False: ctx ended first, or the client, which closes closing.
func Pause(ctx context.Context, d time.Duration, closing <-chan struct{}) bool {
	timer := NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-closing:
	}
	return false
}

//go:build linux || darwin

package history

import "golang.org/x/sys/unix"

// Now reads the clock of the history, in nanoseconds. It means something only in comparison with
// other readings on the same host, in whatever process.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("history: no monotonic clock: " + err.Error())
	}
	return ts.Nano()
}

//go:build !unix

package cli

import "os"

// No signal stops a process or continues it.
var (
	StopSignal     os.Signal
	ContinueSignal os.Signal
)

// No signal ends a process that writes to a pipe without a reader.
var brokenPipe []os.Signal

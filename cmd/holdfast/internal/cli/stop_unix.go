//go:build unix

package cli

import (
	"os"
	"syscall"
)

// The signals that stop a process and continue it.
var (
	StopSignal     os.Signal = syscall.SIGSTOP
	ContinueSignal os.Signal = syscall.SIGCONT
)

// brokenPipe ends a process that writes to a pipe without a reader.
var brokenPipe = []os.Signal{syscall.SIGPIPE}

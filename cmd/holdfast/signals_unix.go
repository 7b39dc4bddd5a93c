//go:build unix

package main

import (
	"os"
	"syscall"
)

// The signals that stop a process and continue it.
var stopSignal, continueSignal os.Signal = syscall.SIGSTOP, syscall.SIGCONT

var (
	passedOn   = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	jobControl = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH}
	brokenPipe = []os.Signal{syscall.SIGPIPE}
)

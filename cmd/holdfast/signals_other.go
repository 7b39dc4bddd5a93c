//go:build !unix

package main

import (
	"os"
	"syscall"
)

// No signal stops a process or continues it.
var stopSignal, continueSignal os.Signal

var (
	passedOn   = []os.Signal{os.Interrupt, syscall.SIGTERM}
	jobControl []os.Signal
	brokenPipe []os.Signal
)

//go:build !unix

package main

import (
	"os"
	"syscall"
)

const continued = syscall.Signal(0) // there is none

var (
	passedOn   = []os.Signal{os.Interrupt, syscall.SIGTERM}
	jobControl []os.Signal
	brokenPipe []os.Signal
)

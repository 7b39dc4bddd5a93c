//go:build unix

package main

import (
	"os"
	"syscall"
)

const continued = syscall.SIGCONT

var (
	passedOn   = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	jobControl = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH}
	brokenPipe = []os.Signal{syscall.SIGPIPE}
)

//go:build unix

package hold

import (
	"os"
	"syscall"
)

var (
	passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2}
	wantedSignals = map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}
	jobControl = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH}
)

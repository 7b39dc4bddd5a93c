//go:build unix

package hold

import (
	"maps"
	"os"
	"slices"
	"syscall"
)

var (
	wantedSignals = map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}
	passedOn   = slices.Collect(maps.Values(wantedSignals))
	jobControl = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH}
)

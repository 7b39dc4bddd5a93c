//go:build !unix

package hold

import (
	"os"
	"syscall"
)

var (
	passedOn   = []os.Signal{os.Interrupt, syscall.SIGTERM}
	jobControl []os.Signal

	wantedSignals map[string]os.Signal // a command gets none
)

//go:build unix

package workload

import (
	"os"
	"syscall"
)

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// abort makes the Go runtime print all goroutines and exit.
func abort(p *os.Process) { _ = p.Signal(syscall.SIGQUIT) }

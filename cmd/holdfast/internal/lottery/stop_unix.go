//go:build unix

package lottery

import (
	"os"
	"syscall"
)

// canStop tells that processes can be stopped and continued here.
const canStop = true

func stopProcess(p *os.Process) error     { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

//go:build unix && !linux

package child

import "syscall"

// begin runs start, which starts the command, and tells how to wait for it.
func begin(start func() (pid int, err error)) (wait func() (syscall.WaitStatus, error), err error) {
	pid, err := start()
	return func() (syscall.WaitStatus, error) { return waitFor(pid) }, err
}

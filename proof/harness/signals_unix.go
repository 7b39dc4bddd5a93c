//go:build unix

package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Freeze stops a process, and returns when no thread of it runs any more: until then, some go on
// after the signal.
func Freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(Patience); time.Now().Before(end) && !isStopped(p.Pid); {
		<-time.After(2 * time.Millisecond)
	}
	return nil
}

// isStopped reports whether all threads are; where the system does not say so, some time has
// passed.
func isStopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if len(threads) == 0 {
		<-time.After(100 * time.Millisecond)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if _, state, ok := bytes.Cut(text, []byte(") ")); err == nil && ok && state[0] != 'T' {
			return false
		}
	}
	return true
}

// Thaw lets a process go on.
func Thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// Abort makes the Go runtime of a process print all goroutines and exit.
func Abort(p *os.Process) { _ = p.Signal(syscall.SIGQUIT) }

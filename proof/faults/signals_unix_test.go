//go:build unix

package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// freeze returns when no thread of the process runs any more: until then, some go on after the
// signal.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && !stopped(p.Pid); {
		pause(2 * time.Millisecond)
	}
	return nil
}

// stopped tells whether all threads are; where the system does not say so, some time has passed.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if len(threads) == 0 {
		pause(100 * time.Millisecond)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if _, state, ok := bytes.Cut(text, []byte(") ")); err == nil && ok && state[0] != 'T' {
			return false
		}
	}
	return true
}

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

package child

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// begin runs start, which starts the command, and tells how to wait for it.
func begin(start func() (pid int, err error)) (wait func() (syscall.WaitStatus, error), err error) {
	if !isReaper() {
		pid, err := start()
		return func() (syscall.WaitStatus, error) { return waitFor(pid) }, err
	}
	return all.begin(start)
}

// isReaper reports whether this process becomes the parent of orphans: it is the first process of a
// container, or asked the system for that.
func isReaper() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
}

// A reaper waits for all children of this process, also for those that it adopted: otherwise these
// would stay as zombies. It gives the commands their statuses, and drops all others.
type reaper struct {
	mu       sync.Mutex
	running  bool // a goroutine waits
	begun    int  // how many commands there were
	commands map[int]chan syscall.WaitStatus
}

var all = reaper{commands: map[int]chan syscall.WaitStatus{}}

// begin is that of the package. No status is given away before its command is known.
func (r *reaper) begin(start func() (pid int, err error)) (wait func() (syscall.WaitStatus, error), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := start()
	if err != nil {
		return nil, err
	}
	statuses := make(chan syscall.WaitStatus, 16)
	r.commands[pid] = statuses
	r.begun++
	if !r.running {
		r.running = true
		go r.reap()
	}
	return func() (syscall.WaitStatus, error) {
		status, ok := <-statuses
		if !ok {
			return 0, syscall.ECHILD
		}
		return status, nil
	}, nil
}

// reap waits until there are no children.
func (r *reaper) reap() {
	for seen := -1; ; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		r.mu.Lock()
		if err != nil && seen == r.begun || err != nil && len(r.commands) == 0 {
			for pid, statuses := range r.commands { // the system told nobody of their ends
				delete(r.commands, pid)
				close(statuses)
			}
			r.running = false
			r.mu.Unlock()
			return
		}
		seen = r.begun // a command may have begun after there were no children
		statuses := r.commands[pid]
		if !status.Stopped() {
			delete(r.commands, pid)
		}
		r.mu.Unlock()
		if statuses != nil && err == nil {
			statuses <- status
		}
	}
}

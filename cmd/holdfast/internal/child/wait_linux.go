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
	return orphans.begin(start)
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
	started  int  // how many commands have been started
	seen     int  // started, when the system last answered that goroutine
	commands map[int]chan syscall.WaitStatus
}

var orphans = reaper{commands: map[int]chan syscall.WaitStatus{}}

// begin starts a command, and tells how to wait for it. It holds the lock meanwhile, so that no
// status comes before its command is known.
func (r *reaper) begin(start func() (pid int, err error)) (wait func() (syscall.WaitStatus, error), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := start()
	if err != nil {
		return nil, err
	}
	statuses := make(chan syscall.WaitStatus, 16) // a command stops less often before its waiter takes one
	r.commands[pid] = statuses
	r.started++
	if !r.running {
		r.running, r.seen = true, -1
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
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			if r.stop() {
				return
			}
		default:
			r.tell(pid, status)
		}
	}
}

// stop ends the reaper after the system has answered that there are no children. It does not if a
// command was started since the answer before, perhaps just after this one.
func (r *reaper) stop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.commands) > 0 && r.seen != r.started {
		r.seen = r.started
		return false
	}
	for pid, statuses := range r.commands { // the system told nobody of their ends
		delete(r.commands, pid)
		close(statuses)
	}
	r.running = false
	return true
}

// tell gives a status to the command's waiter, if it is the status of a command.
func (r *reaper) tell(pid int, status syscall.WaitStatus) {
	r.mu.Lock()
	r.seen = r.started
	statuses := r.commands[pid]
	if !status.Stopped() {
		delete(r.commands, pid)
	}
	r.mu.Unlock()
	if statuses != nil {
		statuses <- status
	}
}

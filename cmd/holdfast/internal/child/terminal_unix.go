//go:build unix

package child

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// control is our controlling terminal, if there is one.
type control struct {
	mu  sync.Mutex
	fd  int
	is  bool
	own int // our process group
}

// open finds the terminal. Standard input may be anything; the terminal is the same.
func (t *control) open() {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	t.fd, t.is, t.own = fd, true, unix.Getpgrp()
}

// eager tells whether the command gets the terminal at its start.
func (t *control) eager(files []*os.File) bool {
	if !t.is || t.foreground() != t.own {
		return false
	}
	out, err := files[1].Stat()
	return err == nil && out.Mode()&os.ModeNamedPipe == 0
}

// follows tells whether a stop of a group by a signal is for us as well. That of a terminal is; what a person stopped
// by hand is only where that person would sit before a terminal without a shell.
func (t *control) follows(s os.Signal, group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is && (s != syscall.SIGSTOP || t.foreground() == group)
}

func (t *control) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// set makes a group the foreground group.
func (t *control) set(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }

// detach lets us write to the terminal, and take it back, from the background; else that would stop us, and nobody would
// renew the lock. What is ignored is so in every process started later, therefore it comes after the start.
func (t *control) detach() {
	if t.is {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// give gives the terminal to a group, if it is ours to give. It tells whether the group has it.
func (t *control) give(group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.is {
		return false
	}
	if t.foreground() == t.own {
		t.set(group)
	}
	return t.foreground() == group
}

// back takes the terminal from a group, or from one that is no more. If somebody else has it, the shell for instance, it
// stays there.
func (t *control) back(group int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.is {
		return
	}
	has := t.foreground()
	if has == group || has > 0 && has != t.own && unix.Kill(-has, 0) == unix.ESRCH {
		t.set(t.own)
	}
}

// close takes the terminal back and forgets it.
func (t *control) close(group int) {
	if group > 0 {
		t.back(group)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.is {
		t.is = false
		_ = unix.Close(t.fd)
	}
}

// shell tells whether somebody outside our process group could continue us. Where the session's leader is one of us, as
// when a terminal multiplexer runs us instead of a shell, nobody would.
func (t *control) shell() bool {
	session, err := unix.Getsid(0)
	if err != nil || session == t.own || unix.Kill(session, 0) == unix.ESRCH {
		return false
	}
	parents, err := unix.Getsid(unix.Getppid())
	return err == nil && parents == session
}

// stopSelf stops our process group as Ctrl-Z would, and returns when it has been continued. SIGTSTP would not stop us:
// once it was listened to, Go has no way back to what the system does with it.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	signal.Reset(syscall.SIGTSTP) // not heard, not lost: nothing
	_ = unix.Kill(0, unix.SIGTSTP)
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	<-continued
}

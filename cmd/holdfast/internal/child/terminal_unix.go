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
	has bool // fd is open
	own int  // our process group
}

// open finds the terminal, whatever the standard input is.
func (t *control) open() {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	t.fd, t.has, t.own = fd, true, unix.Getpgrp()
}

// givesAtStart reports whether the command gets the terminal at its start.
func (t *control) givesAtStart(files []*os.File) bool {
	if !t.has || t.foreground() != t.own {
		return false
	}
	out, err := files[1].Stat()
	return err == nil && out.Mode()&os.ModeNamedPipe == 0
}

// follows reports whether a stop of a group by a signal is for this process too. A stop by the
// terminal is. A stop by hand is only if the group has the terminal: there would be no shell to
// continue it.
func (t *control) follows(s os.Signal, group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.has && (s != syscall.SIGSTOP || t.foreground() == group)
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

// ignoreOutputStop lets this process write to the terminal, and take it back, from the background.
// Otherwise the system would stop it, and nothing would renew the lock. A child process inherits
// ignored signals, so this comes after the start of the command.
func (t *control) ignoreOutputStop() {
	if t.has {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// give gives the terminal to a group if our group has it. It reports whether the group has it then.
func (t *control) give(group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.has {
		return false
	}
	if t.foreground() == t.own {
		t.set(group)
	}
	return t.foreground() == group
}

// back takes the terminal from a group, or from a group that has ended. Another group, such as the
// shell, keeps it.
func (t *control) back(group int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.has {
		return
	}
	front := t.foreground()
	if front == group || front > 0 && front != t.own && unix.Kill(-front, 0) == unix.ESRCH {
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
	if t.has {
		t.has = false
		_ = unix.Close(t.fd)
	}
}

// shell reports whether a process outside our group could continue us. If the leader of the session
// is in our group, as under a terminal multiplexer without a shell, no process would.
func (t *control) shell() bool {
	session, err := unix.Getsid(0)
	if err != nil || session == t.own || unix.Kill(session, 0) == unix.ESRCH {
		return false
	}
	parents, err := unix.Getsid(unix.Getppid())
	return err == nil && parents == session
}

// stopSelf stops our process group as Ctrl-Z does, and returns after it was continued. SIGTSTP
// would not stop this process: after signal.Notify, Go cannot restore its default effect.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	signal.Reset(syscall.SIGTSTP) // the signal to our group has no effect here
	_ = unix.Kill(0, unix.SIGTSTP)
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	<-continued
}

//go:build unix

package child

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Groups says that signals reach the children of the command, and that TERM asks it to end.
const Groups = true

// live starts the command and waits for it on one thread: see the package document.
func (c *Child) live(spec Spec, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attributes := attributes()
	if !spec.Apart {
		c.jobs.open()
	}
	if c.jobs.givesAtStart(spec.Files) {
		attributes.Foreground, attributes.Ctty = true, c.jobs.fd
	}
	wait, err := begin(func() (int, error) {
		process, err := os.StartProcess(spec.Path, spec.Args,
			&os.ProcAttr{Env: spec.Env, Files: spec.Files, Sys: attributes})
		if err != nil {
			return 0, err
		}
		c.process = process
		return process.Pid, nil
	})
	if err != nil {
		c.jobs.close(0)
		started <- err
		return
	}
	c.jobs.ignoreOutputStop()
	started <- nil
	for {
		status, err := wait()
		switch {
		case err != nil: // no other code waits for it
			c.jobs.close(c.process.Pid)
			c.end(1)
			return
		case status.Stopped() && spec.Apart:
		case status.Stopped():
			select {
			case c.stopped <- status.StopSignal():
			default: // a stop is waiting to be received
			}
		case status.Exited(), status.Signaled():
			c.jobs.close(c.process.Pid)
			c.end(code(status))
			return
		}
	}
}

// waitFor waits until a process stops or ends.
func waitFor(pid int) (status syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); !errors.Is(err, syscall.EINTR) {
			return status, err
		}
	}
}

func code(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// Signal sends a signal to the group. It does nothing after the command has been waited for.
func (c *Child) Signal(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := s.(syscall.Signal); ok && !c.reaped {
		_ = syscall.Kill(-c.process.Pid, n)
	}
}

// Term asks the group to end. A stopped group continues for that.
func (c *Child) Term() {
	c.Signal(syscall.SIGTERM)
	c.Signal(syscall.SIGCONT)
}

// Kill ends the group at once. It also works after the end of the command itself, if Left was true
// just before.
func (c *Child) Kill() { _ = syscall.Kill(-c.process.Pid, syscall.SIGKILL) }

// Left reports whether the group has processes.
func (c *Child) Left() bool { return !errors.Is(syscall.Kill(-c.process.Pid, 0), syscall.ESRCH) }

// Resume continues a stopped group, with the terminal if our group has it.
func (c *Child) Resume() {
	c.jobs.give(c.process.Pid)
	c.Signal(syscall.SIGCONT)
}

// Follow reacts to a stop of the command. If the command needs a terminal that we have, it gets
// the terminal and continues. If there is a shell, Follow stops the group and this process until
// the shell continues us. Then may decides whether the command continues or stays stopped. Without
// a shell, the command continues. Without a terminal, nothing happens: the command is stopped and
// this process is not. After Follow, signal.Notify for SIGTSTP has no effect any more.
func (c *Child) Follow(s os.Signal, may func() bool) {
	group := c.process.Pid
	if !c.jobs.follows(s, group) {
		return
	}
	wants := s == syscall.SIGTTIN || s == syscall.SIGTTOU
	switch {
	case wants && c.jobs.give(group):
	case c.jobs.shell():
		c.Signal(syscall.SIGSTOP) // also processes that ignore Ctrl-Z: nothing guards them now
		c.jobs.back(group)
		stopSelf()
		if !may() {
			return
		}
	case wants:
		return // the command would only be stopped again
	}
	c.Resume()
}

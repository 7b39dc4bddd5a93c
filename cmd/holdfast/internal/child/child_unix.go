//go:build unix

package child

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Groups tells that signals reach all that the command started, and that it can be asked to end.
const Groups = true

// live starts the command and waits for it, all on one thread: see the package document.
func (c *Child) live(spec Spec, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attributes := attributes()
	c.jobs.open()
	if c.jobs.eager(spec.Files) {
		attributes.Foreground, attributes.Ctty = true, c.jobs.fd
	}
	var err error
	c.process, err = os.StartProcess(spec.Path, spec.Args, &os.ProcAttr{Env: spec.Env, Files: spec.Files, Sys: attributes})
	if err != nil {
		c.jobs.close(0)
		started <- err
		return
	}
	c.jobs.detach()
	started <- nil
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // somebody else has waited for it, which nobody does
			c.jobs.close(c.process.Pid)
			c.end(1)
			return
		case status.Stopped():
			select {
			case c.stopped <- status.StopSignal():
			default: // they know
			}
		case status.Exited(), status.Signaled():
			c.jobs.close(c.process.Pid)
			c.end(code(status))
			return
		}
	}
}

func code(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// Signal sends a signal to the group. It does nothing once the command has been waited for.
func (c *Child) Signal(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := s.(syscall.Signal); ok && !c.reaped {
		_ = syscall.Kill(-c.process.Pid, n)
	}
}

// Term asks the group to end, also one that is stopped.
func (c *Child) Term() {
	c.Signal(syscall.SIGTERM)
	c.Signal(syscall.SIGCONT)
}

// Kill ends the group at once. It works also for what is left of it when the command itself has ended, as long as
// Left has said so a moment ago.
func (c *Child) Kill() { _ = syscall.Kill(-c.process.Pid, syscall.SIGKILL) }

// Left tells whether anybody of the group is there.
func (c *Child) Left() bool { return !errors.Is(syscall.Kill(-c.process.Pid, 0), syscall.ESRCH) }

// Resume lets a group that was stopped go on, with the terminal if that is ours to give.
func (c *Child) Resume() {
	c.jobs.give(c.process.Pid)
	c.Signal(syscall.SIGCONT)
}

// Follow does what the stop of the command asks for. If it was for want of a terminal that we have, it gets it and goes on.
// If there is a shell, it stops the group and this process until the shell continues us; then it asks whether the
// command may go on, and lets it, or leaves it stopped. Without a shell, it goes on. Without a terminal nothing happens:
// the command is stopped, we are not. Afterwards signal.Notify has forgotten SIGTSTP.
func (c *Child) Follow(s os.Signal, may func() bool) {
	group := c.process.Pid
	if !c.jobs.follows(s, group) {
		return
	}
	wants := s == syscall.SIGTTIN || s == syscall.SIGTTOU
	switch {
	case wants && c.jobs.give(group):
	case c.jobs.shell():
		c.Signal(syscall.SIGSTOP) // also those of the group who ignore Ctrl-Z: nobody watches over them now
		c.jobs.back(group)
		stopSelf()
		if !may() {
			return
		}
	case wants:
		return // it would only ask again
	}
	c.Resume()
}

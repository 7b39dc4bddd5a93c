// Package child runs a command that its parent can end, whole and at a given moment. The command
// has a process group of its own, which is the foreground group of a terminal if there is one. On
// Linux the command lives no longer than its parent.
//
// # On Unix
//
// Signals go to the group, so that they also reach the children of the command. They do not reach
// processes that left the group: a daemon, a job of an interactive shell, a process that setsid
// started.
//
// On Linux the system kills the command (not its children) when this process ends, however it ends.
// The system ties that signal to the thread that started the command. So this thread does nothing
// else, and waits for the command. On other systems the command outlives a parent that was killed
// with -9.
//
// # A terminal
//
// If our group has the terminal, the command's group gets it before its program begins. Then Ctrl-C
// and a new window size reach the command directly. If our output is a pipe, however, we are most
// likely part of a pipeline, and another member, such as a pager, needs the terminal too. In a
// pipeline, and in the background, the command gets the terminal when it asks for it: the system
// stops a group that reads from a terminal of another group, and we see the stop.
//
// When the command is stopped (Ctrl-Z), we stop the whole group, give the terminal back and stop
// too, so that the shell takes over. When the shell continues us, the caller of Follow decides
// whether the command goes on.
//
// # On other systems
//
// There are no groups, and no signal except the end. Only the command itself is ended, at once.
package child

import (
	"os"
	"sync"
)

// A Spec says what to run.
type Spec struct {
	Path  string   // of the program
	Args  []string // the first is the name of the program
	Env   []string
	Files []*os.File // standard input, output and error
	Apart bool       // whether it never gets a terminal, and its stops are not told
}

// A Child is a started command. Its methods are safe for concurrent use.
type Child struct {
	process *os.Process
	done    chan struct{}
	stopped chan os.Signal
	jobs    control

	mu     sync.Mutex
	reaped bool
	code   int
}

// Start starts a command and returns when its program runs. After a failure there is no process.
func Start(spec Spec) (*Child, error) {
	c := &Child{done: make(chan struct{}), stopped: make(chan os.Signal, 1)}
	started := make(chan error)
	go c.live(spec, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// Done is closed when the command has ended and has been waited for. Other processes of its group
// may still run.
func (c *Child) Done() <-chan struct{} { return c.done }

// Stopped receives the signal that stopped the command.
func (c *Child) Stopped() <-chan os.Signal { return c.stopped }

// Code is the exit code of the command, or 128+n if signal n ended it. It is valid after Done is
// closed.
func (c *Child) Code() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code
}

// end notes that the command has ended. From now on its process id may be that of another process,
// unless its group has other processes. The process is not released: Release sets the id to -1, and
// a signal to that group would go to all processes.
func (c *Child) end(code int) {
	c.mu.Lock()
	c.reaped, c.code = true, code
	c.mu.Unlock()
	close(c.done)
}

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

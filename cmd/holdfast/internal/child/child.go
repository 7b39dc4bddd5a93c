package child

import (
	"os"
	"sync"
)

// A Spec says what to run.
type Spec struct {
	Path  string   // of the program
	Args  []string // with the name of the program
	Env   []string
	Files []*os.File // standard input, output and error
}

// A Child is a command that was started. Its methods are safe for concurrent use.
type Child struct {
	process *os.Process
	done    chan struct{}
	stopped chan os.Signal
	jobs    control // of the terminal

	mu     sync.Mutex
	reaped bool
	code   int
}

// Start starts a command and returns when its program runs. On failure there is no process.
func Start(spec Spec) (*Child, error) {
	c := &Child{done: make(chan struct{}), stopped: make(chan os.Signal, 1)}
	started := make(chan error)
	go c.live(spec, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// Done is closed when the command has ended and been waited for. Others of its group may still be there.
func (c *Child) Done() <-chan struct{} { return c.done }

// Stopped tells that the command was stopped, and by which signal.
func (c *Child) Stopped() <-chan os.Signal { return c.stopped }

// Code is how the command ended, once Done is closed: its exit code, or 128+n if signal n ended it.
func (c *Child) Code() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code
}

// end notes that the command is no more. From here on its number may be that of somebody else, unless others of its group
// are there. The process is not released: that would make its number -1, and the group the first process of the machine.
func (c *Child) end(code int) {
	c.mu.Lock()
	c.reaped, c.code = true, code
	c.mu.Unlock()
	close(c.done)
}

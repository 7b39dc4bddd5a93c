//go:build !unix

package child

import "os"

// Groups tells that signals reach all that the command started, and that it can be asked to end.
const Groups = false

// control is of a terminal; there is none to be given.
type control struct{}

func (c *Child) live(spec Spec, started chan<- error) {
	var err error
	c.process, err = os.StartProcess(spec.Path, spec.Args, &os.ProcAttr{Env: spec.Env, Files: spec.Files})
	started <- err
	if err != nil {
		return
	}
	state, err := c.process.Wait()
	if err != nil {
		c.end(1)
		return
	}
	c.end(state.ExitCode())
}

// Signal does nothing: a console tells the command itself what it tells us.
func (c *Child) Signal(os.Signal) {}

// Term does nothing: there is no asking.
func (c *Child) Term() {}

// Kill ends the command. What it started lives on.
func (c *Child) Kill() { _ = c.process.Kill() }

// Left tells nothing of what the command started.
func (c *Child) Left() bool { return false }

// Resume does nothing: nothing is stopped here.
func (c *Child) Resume() {}

// Follow does nothing: nothing is stopped here.
func (c *Child) Follow(os.Signal, func() bool) {}

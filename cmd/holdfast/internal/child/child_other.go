//go:build !unix

package child

import "os"

// Groups says that signals reach the children of the command, and that TERM asks it to end.
const Groups = false

// control is for terminals, which cannot be given to a group here.
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

// Signal does nothing: a console signals the command itself.
func (c *Child) Signal(os.Signal) {}

// Term does nothing: there is no TERM.
func (c *Child) Term() {}

// Kill ends the command. Its children go on.
func (c *Child) Kill() { _ = c.process.Kill() }

// Left is false: the children of the command are not known.
func (c *Child) Left() bool { return false }

// Resume does nothing: no process is stopped here.
func (c *Child) Resume() {}

// Follow does nothing: no process is stopped here.
func (c *Child) Follow(os.Signal, func() bool) {}

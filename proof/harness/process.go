package harness

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// Child returns a command that runs one test of this program as a process of its own, with more
// environment.
func Child(test string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env = append(append(os.Environ(), "HOLDFAST_CHILD=1"), env...)
	return cmd
}

// OnlyChild skips a test that Child alone runs.
func OnlyChild(t *testing.T) {
	if os.Getenv("HOLDFAST_CHILD") == "" {
		t.Skip("a part of another test")
	}
}

// A Process is a child that runs: it reads its standard input, and writes lines of JSON.
type Process struct {
	*exec.Cmd
	Stdin io.WriteCloser
	Lines *json.Decoder
}

// Start starts a child. Its caller ends it.
func Start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	fatal.If(t, err)
	stdout, err := cmd.StdoutPipe()
	fatal.If(t, err)
	fatal.If(t, cmd.Start())
	return &Process{cmd, stdin, json.NewDecoder(stdout)}
}

// Kill ends the process with kill -9.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

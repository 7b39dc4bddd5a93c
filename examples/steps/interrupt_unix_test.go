//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// An interrupt ends a step and all its processes, and so does kill -9 of the parent: all of them
// share its standard error.
func TestStepLeavesNoProcess(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("processes are killed: make proof runs it")
	}
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGKILL} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "--lang", "en", "3")
		cmd.Env = append(os.Environ(), "STEPS_AS_PROGRAM=1")
		out, errOut := cmd.StdoutPipe()
		read, write, errPipe := os.Pipe()
		cmd.Stderr = write
		if errOut != nil || errPipe != nil || cmd.Start() != nil {
			t.Fatal(errOut, errPipe)
		}
		write.Close()
		for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "is killed with -9"); {
		}
		_ = cmd.Process.Signal(signal)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: it ended well", signal)
		}
		if _, err := io.Copy(io.Discard, read); err != nil { // until no process has it
			t.Error(err)
		}
		read.Close()
	}
}

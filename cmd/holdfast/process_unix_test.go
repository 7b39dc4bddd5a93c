//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// All processes of a demo share its standard error. When that ends, none of them is left.
func TestDemoLeavesNoProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args   []string
		group  int // 1: the process; -1: its group, as Ctrl-C does
		signal syscall.Signal
		code   int
	}{
		"killed, embedded":           {[]string{"--embedded"}, 1, syscall.SIGKILL, -1},
		"killed, own server":         {nil, 1, syscall.SIGKILL, -1},
		"interrupted, embedded":      {[]string{"--embedded"}, 1, syscall.SIGINT, 130},
		"interrupted, own server":    {nil, 1, syscall.SIGINT, 130},
		"whole group, as a terminal": {nil, -1, syscall.SIGINT, 130},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := server.Find(); test.args == nil && !ok {
				t.Skip("no redis-server on the PATH")
			}
			errs, theirs, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer errs.Close()
			cmd := exec.Command(self, append([]string{"demo", "--rounds", "50"}, test.args...)...)
			cmd.Stderr, cmd.SysProcAttr = theirs, &syscall.SysProcAttr{Setpgid: true}
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = theirs.Close()
			for lines := bufio.NewScanner(stdout); lines.Scan() && !strings.Contains(lines.Text(), "holds the lock"); {
			}
			if err := syscall.Kill(test.group*cmd.Process.Pid, test.signal); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, stdout)
			late := time.AfterFunc(patient, func() { _ = errs.Close() })
			text, err := io.ReadAll(errs)
			if !late.Stop() {
				t.Errorf("a process is left: %v", err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != test.code {
				t.Errorf("ended with %v, want code %d\n%s", err, test.code, text)
			}
			if test.code == 130 && !strings.HasSuffix(string(text), "interrupted\n") {
				t.Errorf("stderr %q", text)
			}
		})
	}
}

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// All processes of a demo share the standard error of the first. When it is at its end, none of them is left.
func TestNothingIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		real   bool
		end    func(*os.Process) error
		code   int
		signal bool // not on Windows
	}{
		"killed, embedded":           {[]string{"--embedded"}, false, (*os.Process).Kill, -1, false},
		"killed, own server":         {nil, true, (*os.Process).Kill, -1, false},
		"interrupted, embedded":      {[]string{"--embedded"}, false, interrupt, 130, true},
		"interrupted, own server":    {nil, true, interrupt, 130, true},
		"whole group, as a terminal": {nil, true, interruptGroup, 130, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := server.Find(); test.real && !ok {
				t.Skip("no redis-server on the PATH")
			}
			if test.signal && runtime.GOOS == "windows" {
				t.Skip("no signals")
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			errs, theirs, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer errs.Close()
			cmd := exec.Command(self, append([]string{"demo", "--rounds", "50"}, test.args...)...)
			cmd.Stderr = theirs
			ownGroup(cmd)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = theirs.Close()
			lines := bufio.NewScanner(stdout)
			for lines.Scan() && !strings.Contains(lines.Text(), "holds the lock") {
			}
			if err := test.end(cmd.Process); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, stdout)
			late := time.AfterFunc(20*time.Second, func() { _ = errs.Close() })
			said, readErr := io.ReadAll(errs)
			if !late.Stop() {
				t.Errorf("a process is left: %v", readErr)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) {
				t.Errorf("ended with %v", err)
			} else if exit.ExitCode() != test.code && runtime.GOOS != "windows" {
				t.Errorf("ended with %v, want code %d\n%s", err, test.code, said)
			}
			if test.code == 130 && !strings.HasSuffix(string(said), "interrupted\n") {
				t.Errorf("said %q", said)
			}
		})
	}
}

func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }

//go:build unix

package examples_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Each example that is a program gives its lock back when TERM asks it to end, as a container's
// platform does.
func TestProgramsGiveTheirLockBackAtTERM(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a database that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	programs := map[string]struct {
		args []string
		name string // of the lock
		says string // when the program has the lock; empty: it has it when it connects to the database
	}{
		"fenced": {[]string{"127.0.0.1:0"}, "migration", ""},
		"first":  {nil, "order:42", "billing order"},
		"late":   {nil, "order:42", "the first holder has"},
		"leader": {[]string{"127.0.0.1:0"}, "scheduler", "this process schedules"},
	}
	bin := t.TempDir()
	mains, err := filepath.Glob("*/main.go")
	// A lesson ends by itself.
	mains = slices.DeleteFunc(mains, func(main string) bool { return main == "steps/main.go" })
	if err != nil || len(mains) != len(programs) {
		t.Fatalf("%d programs are tried of %q: %v", len(programs), mains, err)
	}
	build := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", bin + "/"}
	for program := range programs {
		build = append(build, "./"+program)
	}
	if out, err := exec.CommandContext(t.Context(), "go", build...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for program, c := range programs {
		t.Run(program, func(t *testing.T) {
			server := redisserver.Start(t)
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), c.args...)
			cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+server.Addr(),
				"DATABASE_URL=postgres://u:p@"+silent.Addr().String()+"/db")
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.says == "" {
				conn, err := silent.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			} else {
				for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), c.says); {
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // an example may call its end an error
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				t.Errorf("it was ended by the signal %v: %s", status.Signal(), &errs)
			}
			if held, err := server.Do("EXISTS", "holdfast:{"+c.name+"}"); err != nil || held != int64(0) {
				t.Errorf("%q is still held: %v, %v; it said %s", c.name, held, err, &errs)
			}
		})
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func adoptOrphans() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A process that adopts orphans waits for them: none stays as a zombie, also while the next command
// of an elect runs. The exit codes of the commands arrive all the same.
func TestRunReaps(t *testing.T) {
	long(t)
	const script = `
orphan=$(sh -c 'sleep 0.2 >/dev/null & echo $!')
parent=$(awk '/^PPid/ { print $2 }' /proc/$orphan/status)
[ "$parent" = "$PPID" ] || { echo "the orphan has the parent $parent, and not $PPID"; exit 1; }
while [ -e /proc/$orphan ]; do sleep 0.01; done
sleep 0.1 & # it is left behind
echo reaped; exit 7`
	for name, wrap := range map[string]func(t *testing.T, cmd *exec.Cmd){
		"subreaper": func(_ *testing.T, cmd *exec.Cmd) { cmd.Env = append(cmd.Env, adoptsOrphans+"=1") },
		"process 1": func(t *testing.T, cmd *exec.Cmd) {
			unshare, err := exec.LookPath("unshare")
			if err == nil {
				err = exec.Command(unshare, "--pid", "--fork", "--mount-proc", "true").Run()
			}
			if err != nil {
				t.Skipf("no process may be the first of its own here: %v", err)
			}
			cmd.Args = append([]string{unshare, "--pid", "--fork", "--kill-child", "--mount-proc", cmd.Path},
				cmd.Args[1:]...)
			cmd.Path = unshare
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := redisserver.Start(t)
			for _, command := range []string{"run", "elect"} {
				cmd, stderr := program(t, s, command, "-v", "job", "--", "sh", "-c", script)
				var out bytes.Buffer
				cmd.Stdout = &out
				wrap(t, cmd)
				cmd.WaitDelay = time.Second
				stuck := time.AfterFunc(patient, func() { _ = cmd.Process.Kill() })
				if command == "elect" {
					text := &witnessed{want: "reaped\n", twice: make(chan struct{})}
					cmd.Stdout = text
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					select {
					case <-text.twice:
					case <-time.After(patient):
						t.Error("the command does not run twice")
					}
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					stuck.Stop()
					continue
				}
				_ = cmd.Run()
				if !stuck.Stop() {
					t.Fatalf("a zombie is left: %s%s", out.String(), stderr)
				}
				if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.Contains(out.String(), "reaped") {
					t.Errorf("%s: exit code %d, %s%s", command, code, out.String(), stderr)
				}
			}
		})
	}
}

// A witnessed output is to have a text twice.
type witnessed struct {
	want  string
	text  strings.Builder
	twice chan struct{}
}

// Write implements io.Writer.
func (w *witnessed) Write(p []byte) (int, error) {
	before := strings.Count(w.text.String(), w.want)
	w.text.Write(p)
	if after := strings.Count(w.text.String(), w.want); before < 2 && after >= 2 {
		close(w.twice)
	}
	return len(p), nil
}

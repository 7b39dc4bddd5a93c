package main

import (
	"bufio"
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
			for command, times := range map[string]int{"run": 1, "elect": 2} {
				cmd, stderr := program(t, s, command, "-v", "job", "--", "sh", "-c", script)
				wrap(t, cmd)
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				stuck := time.AfterFunc(patient, func() { _ = cmd.Process.Kill() })
				text := ""
				for lines := bufio.NewScanner(out); strings.Count(text, "reaped\n") < times && lines.Scan(); {
					text += lines.Text() + "\n"
				}
				if command == "elect" {
					_ = cmd.Process.Kill()
				}
				_ = cmd.Wait()
				if !stuck.Stop() {
					t.Fatalf("a zombie is left: %s%s", text, stderr)
				}
				if code := cmd.ProcessState.ExitCode(); strings.Count(text, "reaped\n") < times ||
					command == "run" && code != 7 {
					t.Errorf("%s: exit code %d, %s%s", command, code, text, stderr)
				}
			}
		})
	}
}

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// program is holdfast with arguments, not started.
func program(t *testing.T, s *redisserver.Server, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if s != nil {
		cmd.Env = append(cmd.Env, "REDIS_URL=redis://"+s.Addr())
	}
	cmd.Stderr = &out
	return cmd, &out
}

// A witness is a fifo that a command and its children hold open: it ends with the last of them.
type witness struct {
	path string
	file *os.File
	text *bufio.Reader
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{path: filepath.Join(t.TempDir(), "fifo")}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// read returns when the command writes a line.
func (w *witness) read(t *testing.T) {
	t.Helper()
	var err error
	if w.file, err = os.Open(w.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.file.Close() })
	w.text = bufio.NewReader(w.file)
	if _, err := w.text.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// gone returns the moment at which the last of them has ended.
func (w *witness) gone(t *testing.T) time.Time {
	t.Helper()
	late := time.AfterFunc(patient, func() { w.file.Close() })
	defer late.Stop()
	if _, err := io.ReadAll(w.text); err != nil {
		t.Errorf("still there after %v: %v", patient, err)
	}
	return time.Now()
}

// complaints is what a run printed, except that the server was slow to answer during the wait.
func complaints(stderr *bytes.Buffer) string {
	var out strings.Builder
	for line := range strings.Lines(stderr.String()) {
		if !strings.Contains(line, "the server is away, still waiting") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// queued returns when the queue has a waiter.
func queued(t *testing.T, s *redisserver.Server) {
	t.Helper()
	until(t, "the queue has a waiter", func() bool {
		kind, err := s.Do("TYPE", "holdfast:{job}:queue")
		return err == nil && kind == "zset"
	})
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patient); time.Now().Before(late); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %v: %s", patient, what)
}

// expiry is a moment before the earliest one at which another can hold the lock. It returns just
// after a renewal.
func expiry(t *testing.T, s *redisserver.Server, ttl time.Duration) time.Time {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patient); time.Now().Before(late); <-tick.C {
		asked := time.Now()
		answer, err := s.Do("PTTL", "holdfast:{job}")
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Duration(answer.(int64)) * time.Millisecond; left > ttl*9/10 {
			return asked.Add(left)
		}
	}
	t.Fatal("never renewed")
	return time.Time{}
}

// A command must not live on when its lock is gone.
func TestRunServerStops(t *testing.T) {
	long(t)
	const ttl = 10 * time.Second // holdfast may then stand still for some 200 ms
	times := 3
	if measured() {
		times = 10
	}
	for n := range times {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			s := redisserver.Start(t)
			w := newWitness(t)
			// It ignores TERM, and so does what it starts.
			cmd, stderr := program(t, s, "run", "--ttl", ttl.String(), "job", "--", "sh", "-c",
				`trap "" TERM; exec 3>"$0"; echo in >&3; sleep 60; sleep 60`, w.path)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.read(t)
			end := expiry(t, s, ttl)
			s.Stop()
			defer s.Continue()
			if late := w.gone(t).Sub(end); late >= 0 && measured() {
				t.Errorf("gone %v after the lock could be another's", late)
			} else {
				t.Logf("gone %v before the lock could be another's", -late)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitLost {
				t.Errorf("exit code %d, want %d", code, cli.ExitLost)
			}
			if !strings.Contains(stderr.String(), "TERM to the command") ||
				!strings.Contains(stderr.String(), "KILL to the command") {
				t.Errorf("stderr %q", stderr)
			}
		})
	}
}

// TERM ends the command, but not its children. They end before another can hold the lock. Without
// children, holdfast does not wait for the end of the lock.
func TestRunLeavesNothing(t *testing.T) {
	long(t)
	const ttl = 15 * time.Second // the command is asked to end with five seconds left
	for name, test := range map[string]struct {
		script string
		least  time.Duration // from the ends of the command and of holdfast run to that of the lock
	}{
		"something left": {`(trap "" TERM; exec 3>"$0"; echo in >&3; exec sleep 60) & wait`, 0},
		"nothing left":   {`exec 3>"$0"; echo in >&3; exec sleep 60`, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redisserver.Start(t)
			w := newWitness(t)
			cmd, stderr := program(t, s, "run", "--ttl", ttl.String(), "job", "--", "sh", "-c", test.script, w.path)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.read(t)
			end := expiry(t, s, ttl)
			s.Stop()
			defer s.Continue()
			if left := end.Sub(w.gone(t)); left <= test.least && measured() {
				t.Errorf("gone %v before the lock could be another's, want more than %v", left, test.least)
			}
			s.Continue()
			_ = cmd.Wait()
			if left := time.Until(end); left < test.least && measured() {
				t.Errorf("holdfast ended %v before the end of the lock, want at least %v", left, test.least)
			}
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitLost ||
				!strings.Contains(stderr.String(), "TERM to the command") {
				t.Errorf("exit code %d, want %d; stderr %q", code, cli.ExitLost, stderr)
			}
		})
	}
}

// A hand-over by message is trusted for half a second until the first renewal. No command starts
// with so little, as its start makes the machine busy. This command stops the server for longer,
// before the first renewal.
func TestRunHandedOver(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	w := newWitness(t)
	holder, _ := program(t, s, "run", "job", "--", "sh", "-c", `exec 3>"$0"; echo in >&3; exec sleep 60`, w.path)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	w.read(t)
	next, stderr := program(t, s, "run", "job", "--", "sh", "-c", `kill -STOP "$0" && sleep 1 && kill -CONT "$0"`,
		strconv.Itoa(s.Pid()))
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Continue()
	queued(t, s)
	if err := holder.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if err := next.Wait(); err != nil || complaints(stderr) != "" {
		t.Errorf("the command that was handed the lock: %v; stderr %q", err, stderr)
	}
}

// Of many commands each one runs, never two at once. No process and no key is left.
func TestRunMany(t *testing.T) {
	long(t)
	times := 60
	if measured() {
		times = 1000
	}
	s := redisserver.Start(t)
	dir := t.TempDir()
	alive, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	script := `mkdir "$0/inside" && echo x >>"$0/log" && rmdir "$0/inside"`
	var all sync.WaitGroup
	jobs := make(chan int)
	for range 10 {
		all.Go(func() {
			for n := range jobs {
				args := []string{"run", "job", "--", "true"}
				if n%2 == 0 {
					args = []string{"run", "job", "--", "sh", "-c", script, dir}
				}
				cmd, stderr := program(t, s, args...)
				cmd.ExtraFiles = []*os.File{theirs}
				if err := cmd.Run(); err != nil || complaints(stderr) != "" {
					t.Errorf("run %d: %v\n%s", n, err, stderr)
				}
			}
		})
	}
	began := time.Now()
	for n := range times {
		jobs <- n
	}
	close(jobs)
	all.Wait()
	t.Logf("%d in %v", times, time.Since(began))
	_ = theirs.Close()
	late := time.AfterFunc(patient, func() { alive.Close() })
	if _, err := io.ReadAll(alive); err != nil {
		t.Errorf("a process is left: %v", err)
	}
	late.Stop()
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if lines := bytes.Count(log, []byte("\n")); err != nil || lines != (times+1)/2 {
		t.Errorf("%d wrote, want %d: %v", lines, (times+1)/2, err)
	}
	keys, err := s.Do("KEYS", "*")
	if text := fmt.Sprint(keys); err != nil || !strings.HasSuffix(text, ":clock]") || strings.Contains(text, " ") {
		t.Errorf("keys %v, %v; want the clock of the tokens alone", keys, err)
	}
}

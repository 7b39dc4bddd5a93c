//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/certificate"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// program is holdfast with arguments, not started.
func program(t *testing.T, s *redisserver.Server, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	fatal.If(t, err)
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
	fatal.If(t, syscall.Mkfifo(w.path, 0o600))
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
func queued(t *testing.T, s *redisserver.Server, name string) {
	t.Helper()
	until(t, "the queue has a waiter", func() bool {
		kind, err := s.Do("TYPE", "holdfast:{"+name+"}:queue")
		return err == nil && kind == "zset"
	})
}

// expiry is a moment before the earliest one at which another can hold the lock. It returns just
// after a renewal.
func expiry(t *testing.T, s *redisserver.Server, ttl time.Duration) time.Time {
	t.Helper()
	var end time.Time
	until(t, "the lock is renewed", func() bool {
		asked := time.Now()
		answer, err := s.Do("PTTL", "holdfast:{job}")
		fatal.If(t, err)
		left := time.Duration(answer.(int64)) * time.Millisecond
		end = asked.Add(left)
		return left > ttl*9/10
	})
	return end
}

// startHolder starts a run of a script whose $0 is a witness.
func startHolder(t *testing.T, s *redisserver.Server, script string, flags ...string) (
	cmd *exec.Cmd, stderr *bytes.Buffer, w *witness,
) {
	t.Helper()
	w = newWitness(t)
	cmd, stderr = program(t, s, append(append([]string{"run"}, flags...), "job", "--", "sh", "-c", script, w.path)...)
	fatal.If(t, cmd.Start())
	return cmd, stderr, w
}

// sleeper is a script that says that it runs, and does not end.
const sleeper = `exec 3>"$0"; echo in >&3; exec sleep 60`

// A command must not live on when its lock is gone. What it started ends too, before another can
// hold the lock. If it started nothing, holdfast does not wait for the end of the lock.
func TestRunServerStops(t *testing.T) {
	long(t)
	times := 3
	if measured() {
		times = 10
	}
	for name, test := range map[string]struct {
		script string
		times  int
		ttl    time.Duration
		least  time.Duration // from the end of the command to that of the lock
		rest   time.Duration // from the end of holdfast run to that of the lock
		stderr string
	}{
		// Holdfast may stand still for some 200 ms.
		"nothing heeds TERM": {`trap "" TERM; exec 3>"$0"; echo in >&3; sleep 60; sleep 60`, times, 10 * time.Second,
			0, -time.Hour, "KILL to the command"},
		// The command is asked to end with five seconds left.
		"a child does not heed TERM": {`(trap "" TERM; exec 3>"$0"; echo in >&3; exec sleep 60) & wait`, 1,
			15 * time.Second, 0, 0, ""},
		"nothing left": {sleeper, 1, 15 * time.Second, time.Second, time.Second, ""},
	} {
		for range test.times {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := redisserver.Start(t)
				cmd, stderr, w := startHolder(t, s, test.script, "--ttl", test.ttl.String())
				w.read(t)
				end := expiry(t, s, test.ttl)
				s.Stop()
				defer s.Continue()
				left := end.Sub(w.gone(t))
				if t.Logf("gone %v before the lock could be another's", left); left <= test.least && measured() {
					t.Errorf("that is not more than %v", test.least)
				}
				s.Continue()
				_ = cmd.Wait()
				if left := time.Until(end); left < test.rest && measured() {
					t.Errorf("holdfast ended %v before the end of the lock, want at least %v", left, test.rest)
				}
				if code := cmd.ProcessState.ExitCode(); code != cli.ExitLost ||
					!strings.Contains(stderr.String(), "TERM to the command") ||
					!strings.Contains(stderr.String(), test.stderr) {
					t.Errorf("exit code %d, want %d; stderr %q", code, cli.ExitLost, stderr)
				}
			})
		}
	}
}

// A hand-over by message is trusted for half a second until the first renewal. No command starts
// with so little, as its start makes the machine busy. This command stops the server for longer,
// before the first renewal.
func TestRunHandedOver(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	holder, _, w := startHolder(t, s, sleeper)
	w.read(t)
	next, stderr := program(t, s, "run", "job", "--", "sh", "-c", `kill -STOP "$0" && sleep 1 && kill -CONT "$0"`,
		strconv.Itoa(s.Pid()))
	fatal.If(t, next.Start())
	defer s.Continue()
	queued(t, s, "job")
	fatal.If(t, holder.Process.Signal(syscall.SIGTERM))
	_ = holder.Wait()
	if err := next.Wait(); err != nil || complaints(stderr) != "" {
		t.Errorf("the command that was handed the lock: %v; stderr %q", err, stderr)
	}
}

// serveTLS starts a server that speaks TLS at a second port. It asks clients for a certificate.
func serveTLS(t *testing.T, cert, key string) (s *redisserver.Server, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	s, err = redisserver.Run(t.Context(), "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert)
	if err != nil {
		t.Skipf("a server without TLS: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s, port
}

// TLS that is spoken to a port without it, and the reverse, is said in words, and so is the cure.
func TestRunTLS(t *testing.T) {
	long(t)
	cert, key := certificate.Write(t)
	s, port := serveTLS(t, cert, key)
	encrypted := "rediss://127.0.0.1:" + port
	for name, test := range map[string]struct {
		flags     []string
		code      int
		want, not string
	}{
		"with all": {[]string{encrypted, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key}, 0, "", "\n"},
		"unknown authority": {[]string{encrypted, "--tls-cert", cert, "--tls-key", key}, cli.ExitNoServer,
			"certificate", "speaks"},
		"without certificate": {[]string{encrypted, "--tls-ca", cert}, cli.ExitNoServer, "no answer", "speaks"},
		"no flags":            {[]string{encrypted}, cli.ExitNoServer, "certificate", "speaks"},
		"TLS to a plain port": {[]string{"rediss://127.0.0.1:" + strconv.Itoa(s.Port())}, cli.ExitNoServer,
			"the server there speaks no TLS, and rediss:// is TLS", "geheim"},
		"plain to TLS": {[]string{"redis://u:geheim@127.0.0.1:" + port}, cli.ExitNoServer,
			"the server there speaks TLS, and redis:// does not", "geheim"},
		"no server": {[]string{"redis://127.0.0.1:1"}, cli.ExitNoServer, "connection refused", "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := program(t, nil, append(append([]string{"run", "-n", "--redis"}, test.flags...),
				"job", "--", "true")...)
			_ = cmd.Run()
			code, text := cmd.ProcessState.ExitCode(), stderr.String()
			if code != test.code || !strings.Contains(text, test.want) || strings.Contains(text, test.not) {
				t.Errorf("exit code %d, stderr %q; want %d and %q, not %q", code, text, test.code, test.want,
					test.not)
			}
		})
	}
}

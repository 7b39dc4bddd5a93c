package database

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

// startTime is how long a server may take until it is ready.
const startTime = time.Minute

// A Server is one server process.
type Server struct {
	Addr string // host and port
	DSN  string // for sql.Open with the drivers pgx and mysql: a user that may do everything

	dir      string
	password string
	done     chan struct{} // closed when the process has ended
	cmd      *exec.Cmd
}

// Pid returns the id of the server's first process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// A system is how one kind of server is set up and started.
type system struct {
	program string
	setUp   func(*Server) error
	args    func(s *Server, port string) []string
	dsn     func(*Server) string
	ready   func(*Server) bool
	end     os.Signal // ends the process and all its children at once
}

// start runs a server until the test is over. If it does not start, the test ends.
func start(tb testing.TB, sys system) *Server {
	tb.Helper()
	program, err := find(sys.program)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "database-") // a directory of tb is root's alone
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	s := &Server{dir: dir, password: rand.Text()}
	if err := give(s.dir); err != nil {
		tb.Fatal(err)
	}
	if err := sys.setUp(s); err != nil {
		tb.Fatal(err)
	}
	for range 3 { // another process may take the free port before the server does
		if err = s.run(program, sys); err == nil {
			tb.Cleanup(func() { s.stop(sys.end) })
			return s
		}
	}
	tb.Fatal(err)
	return nil
}

// errExited marks a server that ended before it was ready.
var errExited = errors.New("the server ended before it was ready")

// run starts the program, and waits until it is ready.
func (s *Server) run(program string, sys system) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.Addr = net.JoinHostPort("127.0.0.1", port)
	s.DSN = sys.dsn(s)
	s.done = make(chan struct{})
	s.cmd, err = s.command(program, sys.args(s, port)...)
	if err != nil {
		return err
	}
	s.cmd.SysProcAttr = attributes(sys.end)
	log, err := os.Create(s.logfile())
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own
	s.cmd.Stdout, s.cmd.Stderr = log, log
	started := make(chan error)
	go func() { // on Linux the system ends the child when the thread that started it ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // ended by a signal, always
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	late, poll := time.After(startTime), time.NewTicker(10*time.Millisecond)
	defer poll.Stop()
	for !sys.ready(s) {
		select {
		case <-s.done:
			return fmt.Errorf("%s: %w; its last words: %s", program, errExited, s.lastWords())
		case <-late:
			s.stop(sys.end)
			return fmt.Errorf("%s is not ready after %v; its last words: %s", program, startTime, s.lastWords())
		case <-poll.C:
		}
	}
	return nil
}

// stop ends the server and waits until it is gone.
func (s *Server) stop(end os.Signal) {
	_ = s.cmd.Process.Signal(end) // it may have ended by itself
	select {
	case <-s.done:
	case <-time.After(startTime):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// setUp runs a program that makes the server's files.
func (s *Server) setUp(program string, args ...string) error {
	cmd, err := s.command(program, args...)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = attributes(os.Kill)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, output)
	}
	return nil
}

// command returns a program in the server's directory, with nothing of this process's environment
// that could lead it elsewhere.
func (s *Server) command(program string, args ...string) (*exec.Cmd, error) {
	path, err := find(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	return cmd, nil
}

// write makes a file that the server may read.
func (s *Server) write(name, text string) (path string, err error) {
	path = filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, give(path)
}

func (s *Server) logfile() string { return filepath.Join(s.dir, "server.log") }

// lastWords returns the end of the server's log.
func (s *Server) lastWords() string {
	log, err := os.ReadFile(s.logfile())
	if err != nil {
		return "none"
	}
	return string(log[max(0, len(log)-1000):])
}

// find returns the path of a program: on PATH, or where Debian has it.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	for _, dirs := range []string{"/usr/sbin", "/usr/lib/postgresql/*/bin"} {
		found, _ := filepath.Glob(filepath.Join(dirs, program)) // the pattern is right
		if len(found) > 0 {
			return slices.MaxFunc(found, byVersion), nil
		}
	}
	return "", fmt.Errorf("no %s: scripts/need %s installs it: %w", program, program, err)
}

// byVersion compares paths by the number of the directory above bin.
func byVersion(a, b string) int {
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0: none
		return n
	}
	return version(a) - version(b)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// Package database starts real PostgreSQL and MariaDB servers for the tests of every module of this
// repository. It needs nothing but the standard library and the servers' programs.
//
//	srv := database.StartPostgreSQL(t) // ends with the test
//	db, err := sql.Open("pgx", srv.DSN)
//
// Each server listens on a free port of 127.0.0.1, with its files in a directory of its own. It
// does not wait for its disk. Neither program runs as root: for root they run as nobody. A server
// ends with the process that started it, on Linux even if that process is killed.
//
// The programs are looked for on PATH, and where Debian has them.
package database

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// startTime is how long a server may take until it is ready.
const startTime = time.Minute

// A Server is one server process.
type Server struct {
	Addr string // host and port
	DSN  string // for sql.Open with the drivers pgx and mysql: a user that may do everything

	tb       testing.TB
	dir      string
	password string
	done     chan struct{} // closed when the process has ended
	cmd      *exec.Cmd
}

// newServer makes a directory for a server, until the test is over.
func newServer(tb testing.TB) *Server {
	tb.Helper()
	dir, err := os.MkdirTemp("", "database-") // a directory of tb is root's alone
	if err == nil {
		err = give(dir)
	}
	fatal.If(tb, err)
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return &Server{tb: tb, dir: dir, password: rand.Text()}
}

// write makes a file that the server may read, and returns its path.
func (s *Server) write(name, text string) (path string) {
	s.tb.Helper()
	path = filepath.Join(s.dir, name)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil {
		err = give(path)
	}
	fatal.If(s.tb, err)
	return path
}

// setUp runs a program that makes the server's files.
func (s *Server) setUp(program string, args ...string) {
	s.tb.Helper()
	cmd := s.command(os.Kill, program, args...)
	if output, err := cmd.CombinedOutput(); err != nil {
		s.tb.Fatalf("%s: %v: %s", program, err, output)
	}
}

// run starts a program on a free port, waits until it is ready, and ends it with the test. The
// signal end ends the process and all its children at once.
func (s *Server) run(end os.Signal, ready func() bool, program string, args func(port string) []string) {
	s.tb.Helper()
	for range 3 { // another process may take the free port before the server does
		port := s.freePort()
		s.Addr = net.JoinHostPort("127.0.0.1", port)
		s.cmd, s.done = s.command(end, program, args(port)...), make(chan struct{})
		log, err := os.Create(filepath.Join(s.dir, "server.log"))
		fatal.If(s.tb, err)
		s.cmd.Stdout, s.cmd.Stderr = log, log
		err = s.start()
		log.Close() // the server has its own
		fatal.If(s.tb, err)
		if s.await(ready) {
			s.tb.Cleanup(func() { s.stop(end) })
			return
		}
		s.stop(end)
	}
	words, _ := os.ReadFile(filepath.Join(s.dir, "server.log"))
	s.tb.Fatalf("%s is not ready; its last words: %s", program, words[max(0, len(words)-1000):])
}

// start starts the process. On Linux the system ends the child when the thread that started it
// ends.
func (s *Server) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // ended by a signal, always
		}
	}()
	return <-started
}

// await waits until the server is ready, and reports false if it ended or took too long.
func (s *Server) await(ready func() bool) bool {
	for late := time.After(startTime); !ready(); {
		select {
		case <-s.done:
			return false
		case <-late:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
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

// command returns a program in the server's directory, with nothing of this process's environment
// that could lead it elsewhere. The program is on PATH, or where Debian has it.
func (s *Server) command(end os.Signal, program string, args ...string) *exec.Cmd {
	s.tb.Helper()
	path, err := exec.LookPath(program)
	for _, dir := range []string{"/usr/sbin", "/usr/lib/postgresql/*/bin"} {
		found, _ := filepath.Glob(filepath.Join(dir, program)) // the pattern is right
		if err != nil && len(found) > 0 {
			path, err = found[len(found)-1], nil // the newest version
		}
	}
	if err != nil {
		s.tb.Fatalf("no %s: scripts/need %s installs it: %v", program, program, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, attributes(end)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	return cmd
}

func (s *Server) freePort() string {
	s.tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(s.tb, err)
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// StartMariaDB runs a MariaDB until the test is over. If it does not start, or is not installed,
// StartMariaDB ends the test.
func StartMariaDB(tb testing.TB) *Server {
	tb.Helper()
	s := newServer(tb)
	init := s.write("init.sql", "CREATE DATABASE IF NOT EXISTS holdfast;\n"+
		"CREATE OR REPLACE USER holdfast@'%' IDENTIFIED BY '"+s.password+"';\n"+
		"GRANT ALL ON *.* TO holdfast@'%';\n"+
		"DROP USER IF EXISTS ''@'localhost';\n")
	s.setUp("mariadb-install-db", "--no-defaults", "--datadir="+s.dir+"/data", "--skip-test-db",
		"--auth-root-authentication-method=socket", "--innodb-flush-log-at-trx-commit=0")
	ready := func() bool {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		n, _ := conn.Read(make([]byte, 1)) // its greeting, which comes after the init file
		return n == 1
	}
	s.run(os.Kill, ready, "mariadbd", func(port string) []string {
		return []string{"--no-defaults", "--datadir=" + s.dir + "/data", "--tmpdir=" + s.dir,
			"--bind-address=127.0.0.1", "--port=" + port, "--socket=" + s.dir + "/socket",
			"--pid-file=" + s.dir + "/pid",
			"--init-file=" + init, "--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0",
			"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
	})
	s.DSN = "holdfast:" + s.password + "@tcp(" + s.Addr + ")/holdfast"
	return s
}

// StartPostgreSQL runs a PostgreSQL until the test is over. If it does not start, or is not
// installed, StartPostgreSQL ends the test.
func StartPostgreSQL(tb testing.TB) *Server {
	tb.Helper()
	s := newServer(tb)
	s.setUp("initdb", "--pgdata=data", "--username=holdfast", "--pwfile="+s.write("password", s.password),
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	ready := func() bool {
		// The eighth line of this file is the state; pg_ctl waits for it too.
		text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
		lines := strings.Split(string(text), "\n")
		return err == nil && len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
	}
	s.run(quit, ready, "postgres", func(port string) []string {
		return []string{"-D", "data", "-h", "127.0.0.1", "-p", port, "-k", "", "-F", "-N", "50",
			"-c", "shared_buffers=16MB", "-c", "deadlock_timeout=20ms"} // a second, else
	})
	s.DSN = "postgres://holdfast:" + s.password + "@" + s.Addr + "/postgres?sslmode=disable"
	return s
}

// Package redisserver starts real server processes for the tests, the benchmarks and the
// demonstrations of every module of this repository. It needs nothing but the standard library and
// the server's program.
//
//	srv := redisserver.Start(t)                         // ends with the test
//	srv := redisserver.Start(t, "--maxmemory", "3mb")   // one option or value an argument
//	srv, err := redisserver.Run(ctx)                    // outside of tests; ends with Close
//
// Each server listens on a free port of 127.0.0.1, in a directory of its own, and writes nothing to
// disk unless its options say so. A test can stop a server and continue it. It can kill a server,
// and start it again on the same port and directory. A server ends with the process that started
// it, on Linux even if that process is killed.
//
// A Clock starts servers whose clock shows the time that a test sets:
//
//	clock := redisserver.NewClock(t)
//	clock.Ahead(time.Hour)                              // its time goes on from there
//	srv := clock.Start(t)
//
// A rig is several servers that belong together, for tests alone:
//
//	master, replicas := redisserver.StartReplicated(t, 2)
//	rig := redisserver.StartSentinel(t)                 // a master, two replicas, three sentinels
//	rig := redisserver.StartCluster(t)                  // three masters, three replicas
//
// The program is $REDIS_SERVER, or else redis-server on PATH. valkey-server works as well.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTime is how long a server may take until it answers. Loading a large file after Restart
// counts as well.
const startTime = 20 * time.Second

// A Server is one server process. It is safe for concurrent use, except that Kill, Restart and
// Close exclude each other: the caller calls one at a time.
type Server struct {
	tb    testing.TB // nil: not in a test
	dir   string
	port  int
	env   []string // besides that of this process
	opts  []string
	conf  string // of a sentinel, which takes no other options
	cli   client
	claim io.Closer // of the port; nil: none

	mu     sync.Mutex
	proc   *process // nil: not running
	frozen bool
}

// Start runs a server until the test is over. opts are arguments for the server's program, which
// override those of this package. If a server does not start, or is not installed, Start ends the
// test.
func Start(tb testing.TB, opts ...string) *Server {
	tb.Helper()
	return begin(tb, "", nil, opts)
}

func begin(tb testing.TB, conf string, env, opts []string) *Server {
	tb.Helper()
	s, err := launch(context.Background(), conf, env, opts)
	if err != nil {
		tb.Fatal(err)
	}
	s.tb = tb
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// Run runs a server until Close. ctx bounds the starting alone. On failure nothing is left behind.
func Run(ctx context.Context, opts ...string) (*Server, error) { return launch(ctx, "", nil, opts) }

func launch(ctx context.Context, conf string, env, opts []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redisserver-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, env: env, opts: opts, conf: conf}
	for range 3 { // another process may take the free port before the server does
		if s.port, s.claim, err = freePort(); err != nil {
			break
		}
		s.cli.addr = s.Addr()
		if err = s.start(ctx); err == nil {
			break
		}
		s.release()
		if !errors.Is(err, errExited) {
			break
		}
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// Addr returns the server's address, such as "127.0.0.1:40123". It stays the same through Kill and
// Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port returns the port of Addr.
func (s *Server) Port() int { return s.port }

// Dir returns the server's working directory. It stays the same through Kill and Restart.
func (s *Server) Dir() string { return s.dir }

// Pid returns the process id, or 0 if the server does not run.
func (s *Server) Pid() int {
	if p := s.running(); p != nil {
		return p.pid()
	}
	return 0
}

// Stop freezes the process (SIGSTOP): connections stay open, and what is sent waits. Stop leaves a
// server alone that does not run.
func (s *Server) Stop() { s.freeze(true); s.signal((*process).stop) }

// Continue lets a frozen process go on (SIGCONT).
func (s *Server) Continue() { s.signal((*process).resume); s.freeze(false) }

// Kill ends the process at once (SIGKILL), also a frozen one, and returns when it is gone.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.proc
	s.proc, s.frozen = nil, false
	s.mu.Unlock()
	if p != nil {
		p.kill()
	}
	s.cli.close()
}

// Restart kills the server if it runs, starts it on the same port and directory, and returns when
// it answers. The server's options decide what it remembers. On failure the server does not run,
// and the test of Start fails as well.
func (s *Server) Restart() error {
	s.Kill()
	err := s.start(context.Background())
	if err != nil && s.tb != nil {
		s.tb.Errorf("restart: %v", err)
	}
	return err
}

// Close kills the server and removes its directory. Further calls do nothing. A Server of Start
// needs no Close.
func (s *Server) Close() error {
	s.Kill()
	s.release()
	return os.RemoveAll(s.dir)
}

// release gives the port up.
func (s *Server) release() {
	if s.claim != nil {
		_ = s.claim.Close()
		s.claim = nil
	}
}

func (s *Server) running() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

func (s *Server) freeze(frozen bool) {
	s.mu.Lock()
	s.frozen = frozen && s.proc != nil
	s.mu.Unlock()
}

// canAnswer reports whether an answer can be expected: the server runs and is not frozen.
func (s *Server) canAnswer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && !s.frozen
}

func (s *Server) signal(send func(*process) error) {
	p := s.running()
	if p == nil {
		return
	}
	if err := send(p); err != nil {
		if s.tb == nil {
			panic("redisserver: " + err.Error()) // a platform without such signals
		}
		s.tb.Errorf("redisserver: %v", err)
	}
}

// errExited marks a server that ended before it answered.
var errExited = errors.New("the server ended before it answered")

// start runs the program and waits for its first answer.
func (s *Server) start(ctx context.Context) error {
	program, err := program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--logfile", s.logfile()}
	if s.conf != "" {
		args, err = s.asSentinel()
		if err != nil {
			return err
		}
	}
	p, err := spawn(program, append(args, s.opts...), s.env)
	if err != nil {
		return err
	}
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for s.cli.ping() != nil {
		select {
		case <-p.done:
			return fmt.Errorf("%s: %w; its last words: %s", program, errExited, s.lastWords())
		case <-ctx.Done():
			p.kill()
			return fmt.Errorf("%s does not answer on %s: %w; its last words: %s", program, s.Addr(), ctx.Err(),
				s.lastWords())
		case <-poll.C:
		}
	}
	if err := s.identify(p); err != nil {
		p.kill()
		s.cli.close()
		return err
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	return nil
}

// identify checks that it is this process that answers: another may have taken the port before it
// listened.
func (s *Server) identify(p *process) error {
	answer, err := s.Do("INFO", "server")
	if err != nil {
		return err
	}
	if text, _ := answer.(string); !strings.Contains(text, fmt.Sprintf("\r\nprocess_id:%d\r\n", p.pid())) {
		return fmt.Errorf("%w: another answers on %s", errExited, s.Addr())
	}
	return nil
}

func (s *Server) logfile() string { return filepath.Join(s.dir, "server.log") }

// lastWords returns the end of the server's log.
func (s *Server) lastWords() string {
	log, err := os.ReadFile(s.logfile())
	if err != nil {
		return "none"
	}
	return string(log[max(0, len(log)-600):])
}

// program finds the server's program.
func program() (string, error) {
	name := os.Getenv("REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s: install Redis 6.2 or newer, or Valkey (make test installs it), "+
			"or set REDIS_SERVER to the program: %w", name, err)
	}
	return path, nil
}

// Ports are drawn from firstPort on. They lie below the ports that systems give to outgoing
// connections, which would keep a killed server from its port. The ports 10000 above them, where a
// cluster's nodes talk, are none of them.
const firstPort, ports = 10_240, 10_000

// freePort finds a port that is free now, and reserves it until claim is closed. While a server is
// down, no server of another test may come to its port: sentinels, replicas and cluster nodes would
// take it for the server that they know. The claim is on the port of another loopback address. If
// the system has none (macOS), claim is nil, and nothing is reserved.
func freePort() (port int, claim io.Closer, err error) {
	for range 100 {
		port = firstPort + rand.IntN(ports)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			continue
		}
		l.Close()
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(port))); err == nil {
			return port, l, nil
		}
		other, none := net.Listen("tcp", "127.0.0.2:0")
		if none != nil {
			return port, nil, nil
		}
		other.Close()
	}
	return 0, nil, err
}

// A process is one running program; done is closed when it has ended and was waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts the program, with some more environment. The starting thread lives as long as the
// child: on Linux the system kills the child when that thread ends, not when the process does.
func spawn(program string, args, env []string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = killWithStarter()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // killed, always
		}
	}()
	return p, <-started
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Find looks for a server program on the PATH.
func Find() (path string, ok bool) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// errBusy: another process took the port meanwhile.
var errBusy = errors.New("the port is in use")

// Start starts the server program at path on a free loopback port. The server stores nothing on
// disk. keeper is the command that calls Keep with the arguments that follow it.
func Start(ctx context.Context, path string, keeper []string) (*Server, error) {
	var err error
	for range 5 { // another process may take the free port a moment later
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		var s *Server
		if s, err = startOn(ctx, path, keeper, port); err == nil {
			return s, nil
		}
		if !errors.Is(err, errBusy) {
			break
		}
	}
	return nil, err
}

func startOn(ctx context.Context, path string, keeper []string, port int) (*Server, error) {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args := append(append([]string(nil), keeper[1:]...), path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no", "--dir", os.TempDir())
	cmd := exec.Command(keeper[0], args...)
	cmd.Stderr = os.Stderr
	setGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	ready, drained := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(drained)
		watch(stdout, ready)
	}()
	s := &Server{URL: "redis://" + addr, stop: stopKeeper(cmd, stdin, stdout, drained)}
	if err := await(ctx, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("%s on %s: %w", path, addr, err), s.Stop())
	}
	if err := s.identify(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s on %s: %w", path, addr, err), s.Stop())
	}
	return s, nil
}

// watch reads the log of the server until its end, and sends to ready whether the server is ready.
// A connection would not show that: the port may belong to the server of another process by now.
func watch(log io.Reader, ready chan<- error) {
	err := errors.New("it ended at once, without a log")
	for lines := bufio.NewScanner(log); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.Contains(line, "Ready to accept connections"):
			ready <- nil
			_, _ = io.Copy(io.Discard, log)
			return
		case strings.Contains(line, "Address already in use"):
			err = errBusy
		case line != "" && !errors.Is(err, errBusy):
			err = fmt.Errorf("it ended at once: %s", line)
		}
	}
	ready <- err
}

func await(ctx context.Context, ready <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("not ready after 10s"))
	defer cancel()
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freePort asks the system for an unused port.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free loopback port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Keep runs a program, kills it when stdin ends, and returns when the program has ended. It is the
// whole work of a process between a command and the server that the command started. However the
// command ends, the system closes the pipe, and the server ends. The server itself would not
// notice.
func Keep(stdin io.Reader, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = cmd.Process.Kill() // the server has nothing to save
	}()
	return cmd.Wait()
}

// stopKeeper closes the keeper's stdin and waits for the keeper, which ends after the server.
func stopKeeper(keeper *exec.Cmd, stdin, stdout io.Closer, drained <-chan struct{}) func() error {
	return sync.OnceValue(func() error {
		_ = stdin.Close()
		late := time.AfterFunc(5*time.Second, func() {
			_ = keeper.Process.Kill()
			_ = stdout.Close() // a server that still runs keeps it open too
		})
		<-drained
		stopped := late.Stop()
		var exit *exec.ExitError
		if err := keeper.Wait(); err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("stopping the server: %w", err)
		}
		if !stopped {
			return errors.New("stopping the server: it did not end within 5s")
		}
		return nil // the keeper's exit code says that the server was killed, as it was to be
	})
}

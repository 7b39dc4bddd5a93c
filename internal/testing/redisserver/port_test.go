package redisserver

import (
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
)

// A process may take a server's port before the server listens. The test must not take that process
// for its server: both tests would write to it.
func TestPortOfAnother(t *testing.T) {
	other := Start(t)
	s := &Server{dir: t.TempDir(), port: other.port, cli: client{addr: other.Addr()}}
	t.Cleanup(s.Kill)
	if err := s.start(t.Context()); !errors.Is(err, errExited) {
		t.Errorf("started on the port of another: %v", err)
	}
	if s.Pid() != 0 {
		t.Errorf("pid %d is taken for it", s.Pid())
	}
}

// A server that is down keeps its port until it is closed: sentinels and replicas look for it
// there.
func TestPortIsKept(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("it kills a server: only with HOLDFAST_PROOF=1")
	}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("a single loopback address: %v", err)
	}
	l.Close()
	s := Start(t)
	s.Kill()
	claimed := func() bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(s.Port())))
		if err == nil {
			l.Close()
		}
		return err != nil
	}
	if !claimed() {
		t.Error("another may take the port of a server that was killed")
	}
	if err := s.Restart(); err != nil || !claimed() {
		t.Errorf("after the restart: %v", err)
	}
	if err := s.Close(); err != nil || claimed() {
		t.Errorf("after the end: %v, still claimed: %v", err, claimed())
	}
}

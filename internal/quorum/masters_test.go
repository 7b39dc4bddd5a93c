package quorum

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func TestMain(m *testing.M) {
	left := leak.Watch()
	code := m.Run()
	for _, s := range masters.idle {
		_ = s.Close()
	}
	if left := left(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// masters are servers that no test uses. They are started when they are needed, and serve one test
// after the other.
var masters struct {
	mu   sync.Mutex
	idle []*redisserver.Server
}

// A master is a real server, asked without a client library.
type master struct{ *redisserver.Server }

// startMaster returns an empty master, for the time of a test.
func startMaster(t *testing.T) master {
	t.Helper()
	masters.mu.Lock()
	defer masters.mu.Unlock()
	if len(masters.idle) == 0 {
		s, err := redisserver.Run(t.Context())
		fatal.If(t, err)
		masters.idle = append(masters.idle, s)
	}
	last := len(masters.idle) - 1
	s := master{masters.idle[last]}
	masters.idle = masters.idle[:last]
	t.Cleanup(func() {
		masters.mu.Lock()
		defer masters.mu.Unlock()
		masters.idle = append(masters.idle, s.Server)
	})
	command(t, s, "FLUSHALL")
	command(t, s, "SCRIPT", "FLUSH")
	return s
}

// startMasters returns three masters.
func startMasters(t *testing.T) []wire.Store {
	t.Helper()
	return []wire.Store{startMaster(t), startMaster(t), startMaster(t)}
}

// Do implements wire.Store.
func (m master) Do(_ context.Context, requests []wire.Request) []wire.Reply {
	replies := make([]wire.Reply, len(requests))
	for i, request := range requests {
		value, err := m.Server.Do(request.Args...)
		if _, network := err.(net.Error); err != nil && !network && !errors.Is(err, io.EOF) {
			replies[i].Refused = err.Error()
		} else {
			replies[i] = wire.Reply{Value: value, Err: err}
		}
	}
	return replies
}

// Subscribe implements wire.Store.
func (m master) Subscribe(_ context.Context, sink wire.Sink) (wire.Subscription, error) {
	conn, err := net.Dial("tcp", m.Addr())
	if err != nil {
		return nil, err
	}
	return &subscription{conn: conn, sink: sink}, nil
}

// Describe implements wire.Store.
func (master) Describe(context.Context) (wire.Topology, error) { return wire.Topology{}, nil }

type subscription struct {
	conn net.Conn
	sink wire.Sink
	all  sync.WaitGroup
}

// Add implements wire.Subscription.
func (s *subscription) Add(_ context.Context, channel string) error {
	if _, err := fmt.Fprintf(s.conn, "*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n", len(channel), channel); err != nil {
		return err
	}
	lines := bufio.NewScanner(s.conn)
	skip := func(n int) bool {
		for range n {
			lines.Scan()
		}
		return lines.Scan()
	}
	if !skip(5) { // *3 $9 subscribe $n channel :1
		return lines.Err()
	}
	s.all.Go(func() {
		for skip(6) { // *3 $7 message $n channel $n text
			s.sink.Message(channel, lines.Text())
		}
	})
	return nil
}

// Remove implements wire.Subscription.
func (*subscription) Remove(context.Context, string) error { return nil }

// Close implements wire.Subscription.
func (s *subscription) Close() error {
	err := s.conn.Close()
	s.all.Wait()
	return err
}

// command sends a command to a master, past the gate.
func command(t *testing.T, s wire.Store, args ...any) any {
	t.Helper()
	if g, ok := s.(*gate); ok {
		s = g.Store
	}
	value, err := s.(master).Server.Do(args...)
	fatal.If(t, err)
	return value
}

// commandAll sends a command to all masters.
func commandAll(t *testing.T, servers []wire.Store, args ...any) {
	t.Helper()
	for _, s := range servers {
		command(t, s, args...)
	}
}

// countAll adds up what all masters answer to a command.
func countAll(t *testing.T, servers []wire.Store, args ...any) (sum int64) {
	t.Helper()
	for _, s := range servers {
		n, _ := command(t, s, args...).(int64)
		sum += n
	}
	return sum
}

// restartMaster makes a master one that was started since, from a snapshot of now: it knows no
// scripts, and its run id is not the one that it wrote down.
func restartMaster(t *testing.T, s wire.Store, prefixes ...string) {
	t.Helper()
	command(t, s, "SCRIPT", "FLUSH")
	for _, prefix := range prefixes {
		command(t, s, "HSET", prefix+":{%quorum}", "run", strings.Repeat("b", 40))
	}
}

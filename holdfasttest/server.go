package holdfasttest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

// New returns a client on an empty server of its own. Both are closed when the test is over. A test
// that lets leases be lost, or needs a second client, calls Start instead.
func New(tb testing.TB) *holdfast.Client {
	tb.Helper()
	return Start(tb).Client(nil)
}

// A Server is a server inside the test. All methods are safe for concurrent use.
type Server struct {
	tb      testing.TB
	redis   *miniredis.Miniredis
	network *network

	mu       sync.Mutex
	prefixes map[string]bool // of its clients
}

// Start serves an empty server until the test is over. Inside a bubble of testing/synctest the
// server uses the bubble's clock. The test's last cleanup then lets a virtual minute pass.
func Start(tb testing.TB) *Server {
	tb.Helper()
	mini := miniredis.NewMiniRedis()
	first, err := mini.Dial() // starts it
	if err != nil {
		tb.Fatalf("holdfasttest: %v", err)
	}
	_ = first.Close()
	s := &Server{tb: tb, redis: mini, network: newNetwork(mini.Server().ServeConn), prefixes: map[string]bool{}}
	bubble := inBubble()
	tb.Cleanup(func() {
		s.network.close()
		mini.Close()
		if bubble {
			<-time.After(time.Minute) // go-redis dials in the background for a while
		}
	})
	mini.ClockTTL(true)
	return s
}

// inBubble reports whether the caller runs inside a bubble of testing/synctest.
func inBubble() (in bool) {
	defer func() { in = recover() == nil }()
	synctest.Wait()
	return true
}

// Client returns a client of the server as another process would have it: it shares nothing else
// with earlier clients. The client is closed when the test is over. A nil config means the
// defaults. Client fails the test if the configuration is refused.
func (s *Server) Client(config *holdfast.Config) *holdfast.Client {
	s.tb.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:            "127.0.0.1:6379", // never dialed, but go-redis resolves names
		DisableIdentity: true,
		PoolSize:        1000, // waiting for a turn uses timers that all bubbles would share
		Dialer:          s.dial,
	})
	s.tb.Cleanup(func() { _ = rdb.Close() })
	client, err := holdfast.New(redisstore.New(rdb), config)
	if err != nil {
		s.tb.Fatalf("holdfasttest: %v", err)
	}
	s.tb.Cleanup(func() { _ = client.Close() })
	prefix := "holdfast"
	if config != nil && config.Prefix != "" {
		prefix = config.Prefix
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefixes[prefix] = true
	return client
}

// dial opens a connection. If that fails, so does the first use of the connection, with the same
// error. go-redis would log a dial that fails to stderr, by a logger that all clients share.
func (s *Server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := s.network.dial(ctx)
	if err != nil {
		return failedConn{err}, nil
	}
	return conn, nil
}

// Lose makes a lease of one of the server's clients be lost now, as if an operator had deleted its
// key. When Lose returns, the lease's context has ended, with a *holdfast.LostError for
// holdfast.LossGone as the cause, and the next waiter is let in.
//
// Other holders that share the name with the lease, such as readers or holders of permits, learn at
// their next renewal that their leases are gone too. All names of a group are lost.
//
// Lose fails the test if the lease was not held, or if its server is silent.
func (s *Server) Lose(lease *holdfast.Lease) {
	s.tb.Helper()
	if err := lease.Err(); err != nil {
		s.tb.Fatalf("holdfasttest: Lose of a lease that is not held: %v", err)
	}
	s.mu.Lock()
	for prefix := range s.prefixes {
		for name := range lease.Tokens() {
			s.redis.Del(key(prefix, name))
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := lease.Check(ctx)
	// the machine stood still for as long as a request may last
	for errors.Is(err, holdfast.ErrUnavailable) && ctx.Err() == nil {
		<-time.After(time.Millisecond) // time passes, also in a bubble
		err = lease.Check(ctx)
	}
	if !errors.Is(err, holdfast.ErrLost) {
		s.tb.Fatalf("holdfasttest: the lease of %q is not lost: %v", lease.Name(), err)
	}
	s.network.disconnect((*link).subscribed) // so that waiters ask at once
}

// key returns the key of the hold of a name.
func key(prefix, name string) string {
	return prefix + ":{" + strings.NewReplacer("%", "%25", "}", "%7D").Replace(name) + "}"
}

// Silence makes the server silent: nothing arrives, in either direction, and nothing fails at once.
// Requests run out of time. Leases are lost before their TTL is over, with holdfast.LossExpired.
func (s *Server) Silence() { s.network.setSilent(true) }

// Resume ends the silence. Requests that were sent meanwhile arrive, late.
func (s *Server) Resume() { s.network.setSilent(false) }

// Slow delays every answer and message that the server sends from now on by d. 0 ends the delay.
func (s *Server) Slow(d time.Duration) { s.network.setDelay(d) }

// Disconnect breaks all connections, and loses what is under way on them. Clients connect again by
// themselves.
func (s *Server) Disconnect() { s.network.disconnect(nil) }

// A failedConn is one that could not be made. Its use fails with the reason.
type failedConn struct{ err error }

func (u failedConn) Read([]byte) (int, error)       { return 0, u.err }
func (u failedConn) Write([]byte) (int, error)      { return 0, u.err }
func (failedConn) Close() error                     { return nil }
func (failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failedConn) SetDeadline(time.Time) error      { return nil }
func (failedConn) SetReadDeadline(time.Time) error  { return nil }
func (failedConn) SetWriteDeadline(time.Time) error { return nil }

package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Embed starts a server in this process, on a free loopback port. It stores nothing on disk and is
// slow: it is for trials.
func Embed() (*Server, error) { return EmbedAt("127.0.0.1:0") }

// EmbedAt is Embed at an address.
func EmbedAt(addr string) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	// Without a clock, no key expires. ClockTTL moves the clock at each access, under the server's
	// own lock. Regular steps from outside would shorten the life of a key by the time since the
	// last step. A lease could then end at the server while its holder still trusts it.
	mini.ClockTTL(true)
	if err := mini.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	e := &embedded{mini: mini, commands: map[string]int{}}
	mini.Server().SetPreHook(e.before)
	return &Server{
		URL:      "redis://" + mini.Addr(),
		Name:     "an in-memory server inside this program",
		stop:     func() error { mini.Close(); return nil },
		embedded: e,
	}, nil
}

// An embedded server looks at each command before it is carried out.
type embedded struct {
	mini *miniredis.Miniredis

	mu       sync.Mutex
	behind   time.Duration // so far its clock is behind that of the system
	commands map[string]int
}

// before is called for the commands of scripts too, while the server is locked. Such commands come
// from a client without a name.
func (e *embedded) before(peer *server.Peer, command string, _ ...string) bool {
	if peer.ClientName == "" {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.behind != 0 {
		e.mini.SetTime(time.Now().Add(-e.behind))
	}
	if command != "CLIENT" { // go-redis says with it what it is
		e.commands[peer.ClientName]++
	}
	return false
}

// SetBehind sets the clock of an embedded server so far behind that of the system. It runs on with
// each command of a client that has a name.
func (s *Server) SetBehind(behind time.Duration) {
	s.embedded.mu.Lock()
	defer s.embedded.mu.Unlock()
	s.embedded.behind = behind
	s.embedded.mini.SetTime(time.Now().Add(-behind))
}

// Commands returns how many commands an embedded server has got from the clients with a name.
// Commands that scripts call do not count.
func (s *Server) Commands(client string) int {
	s.embedded.mu.Lock()
	defer s.embedded.mu.Unlock()
	return s.embedded.commands[client]
}

package server

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
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
	return &Server{
		URL:  "redis://" + mini.Addr(),
		Name: "an in-memory server inside this program",
		stop: func() error { mini.Close(); return nil },
	}, nil
}

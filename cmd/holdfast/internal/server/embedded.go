package server

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// Embed starts a server in this process, on a free loopback port. It keeps nothing and is slow; it is for trying out.
func Embed() (*Server, error) { return EmbedAt("127.0.0.1:0") }

// EmbedAt is Embed at an address.
func EmbedAt(addr string) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	// Without a clock no key would ever expire. This one moves under the server's own lock, in the moment of each
	// access: advancing from outside, every so many milliseconds, would take from a key that was just set the
	// time since the last step, and let a lease end before its holder stops trusting it.
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

package embedded

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// A Clock is what a server shows instead of time.Now: it runs on from a time. As on a real server,
// a key lives until a time, so it is gone when the clock is set forward, and lives longer when that
// is set back. It is safe for concurrent use.
//
// The embedded server writes a score of one digit and zeros, from 1e8 on, in a way that its own Lua
// does not read, so no place and no end should be there exactly.
type Clock struct {
	server *Server

	mu   sync.Mutex
	step time.Duration
}

// NewClock makes a clock of a server that Start has made. The server's clients must have names from
// then on.
func NewClock(s *Server) *Clock {
	c := &Clock{server: s}
	s.Redis.Server().SetPreHook(func(peer *server.Peer, _ string, _ ...string) bool {
		if peer.ClientName != "" { // else it is a command of a script: its server is locked, and has the time
			c.Tick()
		}
		return false
	})
	c.Tick()
	return c
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return time.Now().Add(c.step) }

// Tick tells the server the time, as is done before each command. Code that looks at the server's
// keys without a command calls it first.
func (c *Clock) Tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.Redis.SetTime(c.now())
}

// Ahead lets the clock show so much more than time.Now, or less.
func (c *Clock) Ahead(step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	redis, before := c.server.Redis, c.now()
	redis.SetTime(before)
	keys := redis.Keys() // those that are over are gone now
	c.step = step
	redis.SetTime(c.now())
	back := before.Sub(c.now())
	if back <= 0 {
		return
	}
	for _, key := range keys { // miniredis counts what a key has left, and keeps that when its clock is set back
		if left := redis.TTL(key); left > 0 {
			redis.SetTTL(key, left+back)
		}
	}
}

// Show lets the clock run on from a time.
func (c *Clock) Show(at time.Time) { c.Ahead(time.Until(at)) }

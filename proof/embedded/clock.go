package embedded

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// A Clock is what a server shows instead of time.Now: it runs on from a time. As on a real server,
// a key lives until a time, so it is gone when the clock is set forward, and lives longer when that
// is set back. It is safe for concurrent use.
//
// The embedded server writes a score of one digit and zeros, from 1e8 on, in a way that its own Lua
// does not read, so no place and no end should be there exactly.
type Clock struct {
	redis *miniredis.Miniredis
	began time.Time
	drift float64 // how much faster it runs

	mu   sync.Mutex
	step time.Duration
}

// NewDrifting makes a clock that runs faster than time.Now by a part of the time that passes. Its
// caller calls Tick before each command of a client.
func NewDrifting(redis *miniredis.Miniredis, drift float64) *Clock {
	return &Clock{redis: redis, began: time.Now(), drift: drift}
}

// NewClock makes a clock of a server that Start has made. The server's clients must have names from
// then on.
func NewClock(s *Server) *Clock {
	c := NewDrifting(s.Redis, 0)
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

func (c *Clock) now() time.Time {
	faster := time.Duration(c.drift * float64(time.Since(c.began)))
	return time.Now().Add(faster + c.step)
}

// Tick tells the server the time, as is done before each command. Code that looks at the server's
// keys without a command calls it first.
func (c *Clock) Tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redis.SetTime(c.now())
}

// Ahead lets the clock show so much more than time.Now, or less.
func (c *Clock) Ahead(ahead time.Duration) { c.set(func(time.Duration) time.Duration { return ahead }) }

// Step sets the clock forward, or back.
func (c *Clock) Step(by time.Duration) {
	c.set(func(step time.Duration) time.Duration { return step + by })
}

func (c *Clock) set(change func(time.Duration) time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.now()
	c.redis.SetTime(before)
	keys := c.redis.Keys() // those that are over are gone now
	c.step = change(c.step)
	c.redis.SetTime(c.now())
	back := before.Sub(c.now())
	if back <= 0 {
		return
	}
	for _, key := range keys { // miniredis counts what a key has left, and keeps that when its clock is set back
		if left := c.redis.TTL(key); left > 0 {
			c.redis.SetTTL(key, left+back)
		}
	}
}

// Show lets the clock run on from a time.
func (c *Clock) Show(at time.Time) { c.Ahead(time.Until(at)) }

// Package embedded serves miniredis to a real go-redis client without a network, for tests on a
// fake clock: inside a bubble of testing/synctest everything, the server and its expiry included,
// goes by the bubble's clock, and an hour passes in milliseconds.
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := embedded.Start(t)
//		store := redisstore.New(srv.Client())
//		...
//		srv.Pause() // silence: nothing arrives, nothing fails
//	})
package embedded

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// A Server is miniredis behind a network that obeys. It is safe for concurrent use.
type Server struct {
	// Redis is for looking at the data, and for changing it behind everybody's back.
	Redis *miniredis.Miniredis

	*network.Network

	tb      testing.TB
	address string // never dialed, but go-redis resolves names, and a quorum tells its masters apart
}

var started atomic.Int64

// Start serves an empty server until the test is over. Called inside a bubble, the server's clock
// is the bubble's.
func Start(tb testing.TB) *Server {
	redis := miniredis.NewMiniRedis()
	first, err := redis.Dial() // starts it
	if err != nil {
		panic(err) // it listens nowhere, so nothing can fail
	}
	_ = first.Close()
	serve := func(conn net.Conn) error { redis.Server().ServeConn(conn); return nil }
	address := fmt.Sprintf("127.0.0.1:%d", 1024+started.Add(1)%60000)
	s := &Server{Redis: redis, Network: network.New(serve, network.Config{}), tb: tb, address: address}
	s.Redis.ClockTTL(true)
	tb.Cleanup(func() {
		s.Close()
		s.Redis.Close()
	})
	return s
}

// Client returns a client of the server, closed before it ends. opts change its options before it
// is made.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	opt := &redis.Options{
		Addr:   s.address,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
	}
	for _, change := range opts {
		change(opt)
	}
	rdb := redis.NewClient(opt)
	s.tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

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

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
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
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

// Package embedded serves miniredis to a real go-redis client without a network, for tests on a fake clock: inside a
// bubble of testing/synctest everything, the server and its expiry included, goes by the bubble's clock, and an hour
// passes in milliseconds.
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := embedded.Start(t)
//		store := redisstore.New(srv.Client())
//		...
//		srv.Pause() // silence: nothing arrives, nothing fails
//	})
//
// The network in between holds bytes back and loses them when told to. As in a real one, writing into silence
// succeeds, and what was written before the client gave its connection up still arrives afterwards.
package embedded

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A Server is miniredis behind a network that obeys. It is safe for concurrent use.
type Server struct {
	// Redis is for looking at the data, and for changing it behind everybody's back.
	Redis *miniredis.Miniredis

	tb testing.TB

	mu      sync.Mutex
	moved   *sync.Cond // something below, or in a link, has changed
	paused  bool
	answers []string // commands whose answers get lost
	lost    []string // commands that get lost themselves
	links   map[*link]bool
}

// Start serves an empty server until the test is over. Called inside a bubble, the server's clock is the bubble's.
func Start(tb testing.TB) *Server {
	s := &Server{Redis: miniredis.NewMiniRedis(), tb: tb, links: map[*link]bool{}}
	s.moved = sync.NewCond(&s.mu)
	s.Redis.ClockTTL(true)
	tb.Cleanup(func() {
		s.Disconnect()
		s.Redis.Close()
	})
	return s
}

// Client returns a client of the server, closed when the test is over. opts change its options before it is made.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	opt := &redis.Options{
		Addr:   "127.0.0.1:6379", // never dialed, but go-redis resolves names
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
	}
	for _, change := range opts {
		change(opt)
	}
	rdb := redis.NewClient(opt)
	s.tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Pause makes the network silent, in both directions: nothing arrives and nothing fails. New connections hang.
func (s *Server) Pause() { s.change(func() { s.paused = true }) }

// Resume ends the silence. What was written meanwhile arrives, also on connections that were given up.
func (s *Server) Resume() { s.change(func() { s.paused = false }) }

// DropAnswer loses the answer to the next request in which the word occurs, in any case of letters: the command is
// carried out, and its connection is silent from then on.
func (s *Server) DropAnswer(word string) {
	s.change(func() { s.answers = append(s.answers, word) })
}

// DropRequest loses the next request in which the word occurs: the command is not carried out, and its connection is
// silent from then on.
func (s *Server) DropRequest(word string) { s.change(func() { s.lost = append(s.lost, word) }) }

// Disconnect closes all connections. What is under way on them is lost.
func (s *Server) Disconnect() {
	s.change(func() {
		for l := range s.links {
			l.cut = true
			_ = l.client.Close()
			_ = l.server.Close()
		}
	})
}

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.moved.Broadcast()
}

// dial makes a link to miniredis and returns its outer end.
func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	stop := context.AfterFunc(ctx, s.moved.Broadcast)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.paused && ctx.Err() == nil {
		s.moved.Wait()
	}
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	server, err := s.Redis.Dial()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	outer, inner := net.Pipe()
	l := &link{s: s, client: inner, server: server}
	s.links[l] = true
	l.start()
	return outer, nil
}

// struck takes the word that occurs in the request off the list. mu is held.
func struck(words *[]string, request []byte) bool {
	for i, word := range *words {
		if bytes.Contains(bytes.ToLower(request), []byte(strings.ToLower(word))) {
			*words = append((*words)[:i:i], (*words)[i+1:]...)
			return true
		}
	}
	return false
}

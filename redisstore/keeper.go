package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// quiet is how long nothing may be heard before the server is asked for a sign of life, and how long it may then
	// take for it.
	quiet = 5 * time.Second
	// linger is how long a connection without channels stays, for the next channel to find it.
	linger = 10 * time.Second
	// steady is how long a connection must have lived for the next one to be made without much waiting.
	steady = 10 * time.Second
	// The pause before a new connection, doubled each time.
	shortestPause, longestPause = 10 * time.Millisecond, 2 * time.Second
)

// errIdle ends a connection that nobody needs.
var errIdle = errors.New("redisstore: no channels")

// keep makes one connection after the other, until Close.
func (s *subscription) keep() {
	pause := shortestPause
	for s.wanted() {
		born := time.Now()
		err := s.serve()
		if time.Since(born) >= steady || errors.Is(err, errIdle) {
			pause = shortestPause
		}
		s.rest(pause/2 + rand.N(pause/2))
		pause = min(2*pause, longestPause)
		if errors.Is(err, redis.ErrClosed) {
			pause = longestPause // the client is closed, and stays so
		}
	}
}

// wanted waits until a channel is wanted. It is false after Close.
func (s *subscription) wanted() bool {
	for {
		s.mu.Lock()
		n := len(s.channels)
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			return false
		}
		if n > 0 {
			return true
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return false
		}
	}
}

// rest waits before a new connection. A new call of Add ends it: its caller paces the attempts, and is told of each.
func (s *subscription) rest(pause time.Duration) {
	over := time.NewTimer(pause)
	defer over.Stop()
	for {
		s.mu.Lock()
		hurry := s.hurry
		s.mu.Unlock()
		if hurry {
			return
		}
		select {
		case <-s.wake:
		case <-over.C:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// serve makes a connection, asks it all that is to be asked, and returns the reason why it ended.
func (s *subscription) serve() (err error) {
	c := s.begin()
	defer func() { s.end(c, err) }()
	check := time.NewTimer(quiet)
	defer check.Stop()
	for {
		for {
			q, ok := s.next(c)
			if !ok {
				break
			}
			if err := c.write(q); err != nil {
				return err
			}
			if c.down == nil {
				s.connected(c)
			}
		}
		after, err := s.check(c)
		if err != nil {
			return err
		}
		check.Reset(after)
		select {
		case <-s.wake:
		case <-check.C:
		case <-c.down:
			return c.err
		case <-s.ctx.Done():
			return context.Canceled
		}
	}
}

// connected begins to read, and does not count the connecting as silence.
func (s *subscription) connected(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.asked {
		c.asked[i].at = time.Now()
	}
	c.down = make(chan struct{})
	go c.listen()
}

// errSilent ends a connection on which even a question is not answered.
var errSilent = errors.New("redisstore: the server does not answer")

// check looks whether the connection is alive and needed, asks for a sign of life when it is due, and returns when to
// look again.
func (s *subscription) check(c *connection) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.channels) == 0 {
		left := linger - time.Since(s.emptied)
		if left <= 0 {
			return 0, errIdle
		}
		return left, nil
	}
	heard := c.born.Add(time.Duration(c.heard.Load()))
	if len(c.asked) > 0 {
		left := quiet - min(time.Since(heard), time.Since(c.asked[0].at))
		if left <= 0 {
			return 0, errSilent
		}
		return left, nil
	}
	left := quiet - time.Since(heard)
	if left <= 0 {
		s.ask(question{kind: ping})
		s.nudge()
		return quiet, nil
	}
	return left, nil
}

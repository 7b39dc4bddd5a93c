// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/valkey-io/valkey-go"
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
var errIdle = errors.New("valkeystore: no channels")

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
		if errors.Is(err, valkey.ErrClosing) {
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
func (s *subscription) serve() error {
	s.begin()
	c, err := s.dial()
	if err != nil {
		s.end(false, err)
		return err
	}
	err = c.run()
	go c.client.Close() // it waits a second for a server that is silent
	s.end(c.spoke, err)
	return err
}

// run serves the connection until it ends.
func (c *connection) run() error {
	check := time.NewTimer(c.s.quiet)
	defer check.Stop()
	for {
		if err := c.exchange(); err != nil {
			return err
		}
		after, err := c.s.check(c)
		if err != nil {
			return err
		}
		check.Reset(after)
		select {
		case <-c.s.wake:
		case <-check.C:
		case err := <-c.gone:
			if err == nil {
				err = valkey.ErrClosing
			}
			return err
		case <-c.s.ctx.Done():
			return context.Canceled
		}
	}
}

// check looks whether the connection is alive and needed, asks for a sign of life when it is due, and returns when to
// look again.
func (s *subscription) check(c *connection) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.channels) == 0 {
		left := s.linger - time.Since(s.emptied)
		if left <= 0 {
			return 0, errIdle
		}
		return left, nil
	}
	left := s.quiet - time.Since(c.born.Add(time.Duration(c.heard.Load())))
	if left > 0 {
		return left, nil
	}
	for _, ch := range s.channels {
		s.ask(question{alive, ch})
		break
	}
	s.nudge()
	return s.quiet, nil
}

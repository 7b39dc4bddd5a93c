package rueidisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"
)

const (
	// quiet is how long nothing may be heard before the server is asked for a sign of life, and how
	// long it may then take for it.
	quiet = 5 * time.Second
	// linger is how long a connection without channels stays, for the next channel to find it.
	linger = 10 * time.Second
	// steady is how long a connection must have lived for the next one to be made without much
	// waiting.
	steady = 10 * time.Second
	// The pause before a new connection, doubled each time.
	shortestPause, longestPause = 10 * time.Millisecond, 2 * time.Second
)

// errIdle ends a connection that nobody needs.
var errIdle = errors.New("rueidisstore: no channels")

// keep makes one connection after the other, until Close.
func (l *line) keep() {
	pause := shortestPause
	for l.wanted() {
		born := time.Now()
		err := l.serve()
		if time.Since(born) >= steady || errors.Is(err, errIdle) {
			pause = shortestPause
		}
		l.rest(pause/2 + rand.N(pause/2))
		pause = min(2*pause, longestPause)
		if l.s.home != nil && !errors.Is(err, errIdle) {
			l.s.home.cluster.look() // in the background: its node may be gone
		}
		if errors.Is(err, rueidis.ErrClosing) {
			pause = longestPause // the client is closed, and stays so
		}
	}
}

// wanted waits until a channel is wanted. It is false after Close.
func (l *line) wanted() bool {
	for {
		l.s.mu.Lock()
		n := len(l.channels)
		l.s.mu.Unlock()
		if l.ctx.Err() != nil {
			return false
		}
		if n > 0 {
			return true
		}
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return false
		}
	}
}

// rest waits before a new connection. A new call of Add ends it: its caller paces the attempts, and
// is told of each.
func (l *line) rest(pause time.Duration) {
	over := time.NewTimer(pause)
	defer over.Stop()
	for {
		l.s.mu.Lock()
		hurry := l.hurry
		l.s.mu.Unlock()
		if hurry {
			return
		}
		select {
		case <-l.wake:
		case <-over.C:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// serve makes a connection, asks it all that is to be asked, and returns the reason why it ended.
func (l *line) serve() error {
	l.begin()
	c, err := l.dial()
	if err != nil {
		l.end(false, err)
		return err
	}
	err = c.run()
	go c.client.Close() // it waits a second for a server that is silent
	l.end(c.spoke, err)
	return err
}

// run serves the connection until it ends.
func (c *connection) run() error {
	check := time.NewTimer(c.l.s.quiet)
	defer check.Stop()
	for {
		if err := c.exchange(); err != nil {
			return err
		}
		after, err := c.l.check(c)
		if err != nil {
			return err
		}
		check.Reset(after)
		select {
		case <-c.l.wake:
		case <-check.C:
		case err := <-c.gone:
			if err == nil {
				err = rueidis.ErrClosing
			}
			return err
		case <-c.l.ctx.Done():
			return context.Canceled
		}
	}
}

// check looks whether the connection is alive and needed, asks for a sign of life when it is due,
// and returns when to look again.
func (l *line) check(c *connection) (time.Duration, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if len(l.channels) == 0 {
		left := l.s.linger - time.Since(l.emptied)
		if left <= 0 {
			return 0, errIdle
		}
		return left, nil
	}
	left := l.s.quiet - time.Since(c.born.Add(time.Duration(c.heard.Load())))
	if left > 0 {
		return left, nil
	}
	for _, ch := range l.channels {
		l.ask(question{alive, ch})
		break
	}
	l.nudge()
	return l.s.quiet, nil
}

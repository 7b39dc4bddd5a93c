package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
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
var errIdle = errors.New("redisstore: no channels")

// keep makes one connection after the other, until Close.
func (l *line) keep() {
	pause := shortestPause
	for l.wanted() {
		born := time.Now()
		err := l.serve()
		if time.Since(born) >= steady || errors.Is(err, errIdle) {
			pause = shortestPause
		}
		if l.s.home != nil && !errors.Is(err, errIdle) {
			l.s.home.cluster.rdb.ReloadState(l.ctx) // in the background: its node may be gone
		}
		l.rest(pause/2 + rand.N(pause/2))
		pause = min(2*pause, longestPause)
		if errors.Is(err, redis.ErrClosed) {
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
func (l *line) serve() (err error) {
	c := l.begin()
	defer func() { l.end(c, err) }()
	check := time.NewTimer(quiet)
	defer check.Stop()
	for {
		for {
			q, ok := l.next(c)
			if !ok {
				break
			}
			if err := c.write(q); err != nil {
				return err
			}
			if c.down == nil {
				l.connected(c)
			}
		}
		after, err := l.check(c)
		if err != nil {
			return err
		}
		check.Reset(after)
		select {
		case <-l.wake:
		case <-check.C:
		case <-c.down:
			return c.err
		case <-l.ctx.Done():
			return context.Canceled
		}
	}
}

// connected begins to read, and does not count the connecting as silence.
func (l *line) connected(c *connection) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for i := range c.asked {
		c.asked[i].at = time.Now()
	}
	c.down = make(chan struct{})
	go c.listen()
}

// errSilent ends a connection on which even a question is not answered.
var errSilent = errors.New("redisstore: the server does not answer")

// check looks whether the connection is alive and needed, asks for a sign of life when it is due,
// and returns when to look again.
func (l *line) check(c *connection) (time.Duration, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if len(l.channels) == 0 {
		left := linger - time.Since(l.emptied)
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
		l.ask(question{kind: ping})
		l.nudge()
		return quiet, nil
	}
	return left, nil
}

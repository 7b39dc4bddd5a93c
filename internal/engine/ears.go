package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ears keep one subscription a client, open while anybody waits and some seconds longer (trap 21).
type ears struct {
	engine *Engine

	mu      sync.Mutex
	waiters int
	open    protocol.Listening
	since   time.Time     // when it was open
	opening chan struct{} // closed when opening is done; nil: nobody opens
	failure error         // why the last opening failed
	failed  time.Time     // when
	idle    *time.Timer
	over    bool
}

// enter counts a waiter in.
func (s *ears) enter() {
	s.mu.Lock()
	s.waiters++
	s.mu.Unlock()
}

// leave counts a waiter out.
func (s *ears) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters--
	if s.waiters > 0 || s.open == nil || s.over {
		return
	}
	if s.idle == nil {
		s.idle = time.AfterFunc(linger, s.rest)
	} else {
		s.idle.Reset(linger)
	}
}

// rest closes the subscription when nobody waits.
func (s *ears) rest() {
	s.mu.Lock()
	open := s.open
	if s.waiters > 0 || s.over {
		s.mu.Unlock()
		return
	}
	s.open = nil
	s.mu.Unlock()
	if open != nil {
		open.Close()
	}
}

// denied tells whether listening was not allowed, a moment ago.
func (s *ears) denied() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && s.open == nil && isDenied(s.failure) && time.Since(s.failed) < linger
}

func isDenied(err error) bool {
	var failure *protocol.Failure
	return errors.As(err, &failure) && failure.Reason == protocol.Denied
}

// hear opens the subscription if it is not, and tells since when messages about a name come; zero: they do not, for err.
func (s *ears) hear(ctx context.Context, about protocol.Watched) (since time.Time, err error) {
	open, since, err := s.opened(ctx)
	if open == nil {
		return since, err
	}
	later, err := open.Hear(ctx, about)
	switch {
	case err != nil:
		return time.Time{}, err
	case later.After(since):
		return later, nil
	}
	return since, nil
}

// opened is the subscription, and since when it is open.
func (s *ears) opened(ctx context.Context) (open protocol.Listening, since time.Time, err error) {
	s.mu.Lock()
	if s.open != nil || s.over {
		defer s.mu.Unlock()
		return s.open, s.since, nil
	}
	if s.opening == nil {
		s.opening = make(chan struct{})
		s.engine.busy.Add(1)
		go s.listen()
	}
	opening := s.opening
	s.mu.Unlock()
	select {
	case <-opening:
	case <-ctx.Done():
		return nil, time.Time{}, protocol.EndOf(ctx)
	case <-s.engine.closing:
		return nil, time.Time{}, s.engine.config.Closed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return nil, time.Time{}, s.failure
	}
	return s.open, s.since, nil
}

// listen opens the subscription on behalf of all who wait for it: none of them can cancel it for the others.
func (s *ears) listen() {
	defer s.engine.busy.Done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open, err := s.engine.protocol.Listen(ctx, s.engine)
	s.mu.Lock()
	close(s.opening)
	s.opening = nil
	s.failure, s.failed = err, time.Now()
	if err == nil && !s.over {
		s.open, s.since = open, time.Now()
		open = nil
	}
	s.mu.Unlock()
	if err == nil && open != nil {
		open.Close()
	}
}

// close ends it for good.
func (s *ears) close() {
	s.mu.Lock()
	open := s.open
	s.over, s.open = true, nil
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	if open != nil {
		open.Close()
	}
}

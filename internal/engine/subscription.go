package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A subscription is the way of all messages to a client: one Listener of the protocol. It is open
// while a goroutine waits and some seconds longer (trap 21). A wait with a kept place has one of
// its own, which ends with the wait.
type subscription struct {
	engine *Engine
	ticket protocol.ID // of a kept place; empty: all other messages

	mu        sync.Mutex
	waiters   int
	listening protocol.Listener
	openSince time.Time     // when it was open
	opening   chan struct{} // closed when opening is done; nil: it is not being opened
	failure   error         // why the last opening failed
	failedAt  time.Time     // when
	idleTimer *time.Timer
	closed    bool
}

func (s *subscription) addWaiter() {
	s.mu.Lock()
	s.waiters++
	s.mu.Unlock()
}

// removeWaiter counts a waiter out.
func (s *subscription) removeWaiter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters--
	if s.waiters > 0 || s.listening == nil || s.closed {
		return
	}
	if s.idleTimer == nil {
		s.idleTimer = time.AfterFunc(linger, s.closeIdle)
	} else {
		s.idleTimer.Reset(linger)
	}
}

// closeIdle closes the subscription if no goroutine waits, and no holder is to be told of others.
func (s *subscription) closeIdle() {
	needed := s.ticket == "" && s.engine.isToldOfAny()
	s.mu.Lock()
	open := s.listening
	if needed && !s.closed {
		s.idleTimer.Reset(linger)
	}
	if needed || s.waiters > 0 || s.closed {
		s.mu.Unlock()
		return
	}
	s.listening = nil
	s.mu.Unlock()
	if open != nil {
		open.Close()
	}
	if s.ticket == "" { // a hold that came meanwhile hears nothing
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		s.engine.recallAll()
	}
}

// recentlyDenied reports whether the server refused to subscribe this client a moment ago.
func (s *subscription) recentlyDenied() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && s.listening == nil && isDenied(s.failure) && time.Since(s.failedAt) < linger
}

// recentlyFailed reports whether the subscription could not be opened a moment ago.
func (s *subscription) recentlyFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && s.listening == nil && time.Since(s.failedAt) < askEvery
}

func isDenied(err error) bool {
	var failure *protocol.Failure
	return errors.As(err, &failure) && failure.Reason == protocol.Denied
}

// ensureSubscribed opens the subscription if it is not open, and tells since when messages about
// a name come. Zero: they do not come, for err.
func (s *subscription) ensureSubscribed(ctx context.Context, about protocol.Subject) (since time.Time, err error) {
	open, since, err := s.ensureOpen(ctx)
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

// ensureOpen returns the open subscription, and since when it is open.
func (s *subscription) ensureOpen(ctx context.Context) (open protocol.Listener, since time.Time, err error) {
	s.mu.Lock()
	if s.listening != nil || s.closed {
		defer s.mu.Unlock()
		return s.listening, s.openSince, nil
	}
	if s.opening == nil {
		s.opening = make(chan struct{})
		s.engine.busy.Add(1)
		go s.openInBackground()
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
	if s.listening == nil {
		return nil, time.Time{}, s.failure
	}
	return s.listening, s.openSince, nil
}

func (s *subscription) listen(ctx context.Context) (protocol.Listener, error) {
	if s.ticket != "" {
		return s.engine.protocol.ListenTicket(ctx, s.ticket, s.engine)
	}
	return s.engine.protocol.Listen(ctx, s.engine)
}

// openInBackground opens the subscription on behalf of all goroutines that wait for it: none of
// them can cancel that for the others.
func (s *subscription) openInBackground() {
	defer s.engine.busy.Done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open, err := s.listen(ctx)
	s.mu.Lock()
	close(s.opening)
	s.opening = nil
	s.failure, s.failedAt = err, time.Now()
	if err == nil && !s.closed {
		s.listening, s.openSince = open, time.Now()
		open = nil
	}
	s.mu.Unlock()
	if err == nil && open != nil {
		open.Close()
	}
}

func (s *subscription) close() {
	s.mu.Lock()
	open := s.listening
	s.closed, s.listening = true, nil
	if s.idleTimer != nil {
		s.idleTimer.Stop()
	}
	s.mu.Unlock()
	if open != nil {
		open.Close()
	}
}

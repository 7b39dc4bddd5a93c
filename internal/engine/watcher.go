package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A watcher is a goroutine that waits for a state of a name. Its fields but ticket are guarded by the engine's mutex.
type watcher struct {
	ticket protocol.Ticket
	lookAt time.Time // when to look; zero: nobody said so
	gap    bool
	woken  chan struct{} // of one
}

// wake wakes the watcher. It is called with the mutex held.
func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// subject is what a watcher watches.
type subject struct {
	protocol.Watched
	name string
	ttl  time.Duration // for the patience of one request
}

// query asks once.
func (e *Engine) query(ctx context.Context, s subject, ticket *protocol.Ticket) (protocol.Standing, error) {
	if err := e.check(ctx); err != nil {
		return protocol.Standing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout(s.ttl))
	defer cancel()
	return s.Look(ctx, ticket)
}

// watchFor looks until it has seen enough. The error is a *WaitEnded, the Closed error, a *protocol.Foreign or a
// *protocol.Failure that waiting does not cure. See the package document.
func (e *Engine) watchFor(ctx context.Context, s subject, enough func(protocol.Standing) bool) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	start, ended := time.Now(), &WaitEnded{}
	w := &watcher{ticket: protocol.Ticket{ID: ID(), Block: 1}, woken: make(chan struct{}, 1)}
	counted, subscribed := false, false // as a waiter of the subscription; messages come
	var ticket *protocol.Ticket         // that of w, once messages come
	defer func() {
		if counted {
			e.subscription.removeWaiter()
		}
		e.forget(w, s, ticket != nil)
	}()
	for failures := 0; ; {
		if subscribed {
			ticket = &w.ticket
		}
		e.expect(w)
		sent := time.Now()
		standing, err := e.query(ctx, s, ticket)
		var failure *protocol.Failure
		next := sent.Add(jitter(askEvery))
		switch {
		case err == nil && enough(standing):
			return nil
		case err == nil:
			failures = 0
			ended.Answered, ended.Failure = true, nil
			if !counted {
				counted = true
				e.subscription.addWaiter()
				e.observe(Event{Kind: Waiting, Name: s.name})
			}
			before := subscribed
			since, _ := e.subscription.ensureSubscribed(ctx, s.Watched)
			if subscribed = !since.IsZero(); subscribed && !before {
				continue // from here on nothing is missed: what changed before is in the next answer
			}
			if !subscribed {
				next = sent.Add(jitter(lookUnsubscribed))
			}
		case !isOver(ctx) && errors.As(err, &failure) && failure.Reason.Passing():
			failures++
			ended.Failure = err
			next = sent.Add(backoff(failures))
			e.config.Logger.Warn("holdfast: looking again", "name", s.name, "error", err)
			e.observe(Event{Kind: Retried, Name: s.name, Err: err})
		case !isOver(ctx):
			return err
		}
		if ctx.Err() == nil {
			err = e.waitForMessage(ctx, w, next)
		}
		if ctx.Err() != nil {
			ended.Err, ended.Waited = protocol.EndOf(ctx), time.Since(start)
			return ended
		}
		if err != nil {
			return err
		}
	}
}

// expect makes messages to a watcher find it, and forgets those that came before.
func (e *Engine) expect(w *watcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.lookAt, w.gap = time.Time{}, false
	e.watchers[w.ticket.ID] = w
}

// waitForMessage waits for the moment of the next look, for a message, or for the end of waiting; then the error is the Closed
// error, or ctx is over.
func (e *Engine) waitForMessage(ctx context.Context, w *watcher, next time.Time) error {
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		e.mu.Lock()
		lookAt, gap := w.lookAt, w.gap
		e.mu.Unlock()
		if gap {
			return nil
		}
		if !lookAt.IsZero() && lookAt.Before(next) {
			next = lookAt
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
			return nil
		case <-w.woken:
		case <-ctx.Done():
			return nil
		case <-e.closing:
			return e.config.Closed
		}
	}
}

// forget ends a watcher. What the server knows of it is taken back once, in the background; it is called by what Close
// waits for.
func (e *Engine) forget(w *watcher, s subject, known bool) {
	e.mu.Lock()
	delete(e.watchers, w.ticket.ID)
	e.mu.Unlock()
	if !known {
		return
	}
	e.busy.Add(1)
	go func() {
		defer e.busy.Done()
		ctx := deadline{context.Background(), time.Now().Add(timeout(s.ttl))}
		if err := s.Unwatch(ctx, w.ticket); err != nil {
			e.config.Logger.Debug("holdfast: a watcher stays until the server forgets it", "name", s.name, "error", err)
		}
	}()
}

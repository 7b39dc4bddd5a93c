package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A subject is what a watcher watches.
type subject struct {
	protocol.Subject
	kind protocol.Kind
	name string
	ttl  time.Duration // for the patience of one request
}

// A watcher is a goroutine that waits for a state of a name. It is a requester.
type watcher struct {
	waitLoop
	subject    subject
	enough     func(protocol.Standing) bool
	ticket     protocol.Ticket
	subscribed bool // messages come
	known      bool // the server may know its ticket
}

// watchFor looks until it has seen enough. LookPace is the pace of its caller, who may have looked
// before. The error is a *WaitFailure, the Closed error, a *protocol.Foreign or a *protocol.Failure
// that waiting does not cure. See the package document.
func (e *Engine) watchFor(ctx context.Context, s subject, lookPace *protocol.Pace,
	enough func(protocol.Standing) bool) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	w := &watcher{
		waitLoop: waitLoop{engine: e, call: &call{engine: e, kind: s.kind, name: s.name, ctx: ctx, start: time.Now()},
			pace: *lookPace},
		subject: s,
		enough:  enough,
		ticket:  protocol.Ticket{ID: protocol.NewID(), Block: 1},
	}
	w.pace.Every = pace(s.ttl).Every
	defer w.forget()
	defer func() { *lookPace = w.pace }()
	return w.wait(ctx, w, w.ticket.ID)
}

// query looks once.
func (e *Engine) query(ctx context.Context, s subject, ticket *protocol.Ticket) (protocol.Standing, error) {
	if err := e.check(ctx); err != nil {
		return protocol.Standing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout(s.ttl))
	defer cancel()
	return s.Look(ctx, ticket)
}

// request looks, under the watcher's ticket once messages come.
func (w *watcher) request(ctx context.Context) (step, time.Time, error) {
	var ticket *protocol.Ticket
	if w.known = w.known || w.subscribed; w.known {
		ticket = &w.ticket
	}
	sent := time.Now()
	w.pace.Sent(sent)
	standing, err := w.engine.query(ctx, w.subject, ticket)
	var failure *protocol.Failure
	switch {
	case err == nil && w.enough(standing):
		return stepDone, time.Time{}, nil
	case err == nil:
		return w.mustWait(ctx, sent)
	case isOver(ctx):
		return stepWait, sent.Add(jitter(askEvery)), nil // until ctx has ended
	case errors.As(err, &failure) && failure.Reason.Passing():
		return stepWait, w.retry(ctx, sent, err, "holdfast: looking again"), nil
	}
	return stepDone, time.Time{}, err
}

// mustWait makes messages come after a look that did not see enough, and tells when to look again.
func (w *watcher) mustWait(ctx context.Context, sent time.Time) (step, time.Time, error) {
	w.call.observeWait(Watching)
	before := w.subscribed
	w.subscribed, _, _ = w.beginWaiting(ctx, w.subject.Subject, protocol.Answer{}, sent)
	switch {
	case w.subscribed && !before:
		return stepAsk, time.Time{}, nil // what changed before this is in the next answer; what changes later is told
	case w.subscribed:
		return stepWait, sent.Add(jitter(askEvery)), nil
	}
	return stepWait, sent.Add(jitter(lookUnsubscribed)), nil
}

// handle has nothing to do: a message says when to look, or that there was a gap.
func (w *watcher) handle(messages) (step, error) { return stepWait, nil }

// forget ends a watcher. Its place at the server is taken back once, in the background. The caller
// is counted in busy, so that Close cannot miss the goroutine that forget starts.
func (w *watcher) forget() {
	e, s := w.engine, w.subject
	e.mu.Lock()
	delete(e.waits, w.ticket.ID)
	e.mu.Unlock()
	if !w.known {
		return
	}
	e.busy.Go(func() {
		ctx := deadline{context.Background(), time.Now().Add(timeout(s.ttl))}
		if err := s.Unwatch(ctx, w.ticket); err != nil {
			e.config.Logger.Debug("holdfast: a watcher stays until the server forgets it", "name", s.name, "error", err)
		}
	})
}

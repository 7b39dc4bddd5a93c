package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A mailbox has the messages for one goroutine that waits. Engine.Granted, Engine.Nudge, Engine.Gap
// and Engine.openToReaders put them in and wake the goroutine, which takes them out in
// waitLoop.sleep. Engine.passLead and attempt.replace drop what is not for the next leader or the
// next ticket. The engine's mutex guards both fields.
type mailbox struct {
	messages messages

	// wakeUps has room for one wake-up; nil until the goroutine sleeps for the first time. Only
	// that goroutine sets it, under the mutex, and therefore receives from it without the mutex.
	wakeUps chan struct{}
}

// messages are what came for a goroutine and was not yet taken.
type messages struct {
	grant    *protocol.Grant // its ticket was handed the name; nil: no
	join     *hold           // a hold of this process that a leader of readers may join; nil: none
	askAt    time.Time       // when the server told it to ask; zero: it did not
	recalled bool            // another asks for the hold that its ticket may have
	// askNow: it must ask at once. Messages may have been missed, its hold may be broken, or the
	// name was resized.
	askNow bool
}

// wake tells the goroutine of the mailbox that there are messages. The engine's mutex is held.
func (m *mailbox) wake() {
	select {
	case m.wakeUps <- struct{}{}:
	default: // woken already, or not yet asleep: it takes the messages before it sleeps
	}
}

// askNow has the goroutine of the mailbox ask at once. The engine's mutex is held.
func (m *mailbox) askNow() {
	m.messages.askNow = true
	m.wake()
}

// A step is what a goroutine that waits does next.
type step int

const (
	stepWait step = iota // it sleeps until a moment, or until a message
	stepAsk              // it asks at once
	stepDone             // it waits no more
)

// A requester sends the requests of a goroutine that waits. An attempt asks for a hold, and a
// watcher looks at a name.
type requester interface {
	// request sends one request under its ticket, and tells what to do next and, for stepWait,
	// when the next request is due.
	request(ctx context.Context) (next step, due time.Time, err error)

	// handle takes a grant or a hold to join, and tells what to do next.
	handle(m messages) (next step, err error)
}

// A waitLoop is the part that an attempt and a watcher have in common: it sends requests until the
// requester is done, and sleeps between them. One goroutine runs it at a time. The engine's mutex
// is never held while that goroutine sleeps or sends.
type waitLoop struct {
	engine *Engine
	call   *call // for which it waits; with the lead of a pool, that of the next leader

	ownSubscription *subscription // of a kept place; nil: the one of the engine

	// Owned by the goroutine that runs it; no mutex.
	pace            protocol.Pace
	failures        int       // requests in a row without an answer
	counted         bool      // it counts among the waiters of the subscription
	subscribedSince time.Time // since when messages come, as last told; zero: they do not

	// Guarded by the engine's mutex. Waiters of a pool read the answer of their leader.
	mailbox       mailbox
	answer        protocol.Answer // the last one
	holderContext context.Context // of the hold that answer names, if it is of this process; else nil
	answered      bool            // whether there is one
	failure       error           // of the request after it; nil: none failed
}

// wait asks, and does the next step again and again, until the requester is done, ctx ends or the
// engine is closed. From now on messages for its ticket reach the mailbox. becomeHolder, abandon,
// replace and watcher.forget end that. Whatever asks for a request, its pace bounds how soon it is
// sent: an earlier leader of its pool may have used the pace up.
func (w *waitLoop) wait(ctx context.Context, r requester, ticket protocol.ID) (err error) {
	defer func() { // a goroutine that takes the attempt over begins anew
		if w.counted {
			w.subscription().removeWaiter()
		}
		w.failures, w.counted, w.subscribedSince = 0, false, time.Time{}
	}()
	e := w.engine
	e.mu.Lock()
	e.waits[ticket] = w
	e.mu.Unlock()
	for next, due := stepAsk, (time.Time{}); next != stepDone && err == nil; {
		switch {
		case next == stepAsk && !w.mayAsk():
			next, due = stepWait, w.pace.Next()
		case next == stepWait:
			next, err = w.sleep(ctx, r, due)
		default:
			// A reason to ask that arrives during the request causes another one. A grant stays: it
			// may arrive before the answer to the request that won it.
			e.mu.Lock()
			w.mailbox.messages.askAt, w.mailbox.messages.askNow = time.Time{}, false
			e.mu.Unlock()
			next, due, err = r.request(ctx)
		}
	}
	return err
}

// mayAsk reports whether the pace allows a request now.
func (w *waitLoop) mayAsk() bool {
	next := w.pace.Next()
	return next.IsZero() || !next.After(time.Now())
}

// subscription is what brings the messages.
func (w *waitLoop) subscription() *subscription {
	if w.ownSubscription != nil {
		return w.ownSubscription
	}
	return &w.engine.subscription
}

// sleep returns when the next request is due and its pace allows it, when a message asks for one or
// makes the requester done, or when waiting ends. It never returns stepWait.
func (w *waitLoop) sleep(ctx context.Context, r requester, due time.Time) (step, error) {
	soonest := w.pace.Next()
	due = later(due, soonest)
	timer := protocol.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		next, askAt, err := w.handleMessages(r)
		if next != stepWait || err != nil {
			return next, err
		}
		if !askAt.IsZero() && later(askAt, soonest).Before(due) {
			due = later(askAt, soonest)
			protocol.ResetTimer(timer, time.Until(due))
		}
		if !due.After(time.Now()) && ctx.Err() == nil && !w.engine.isClosing() {
			return stepAsk, nil
		}
		select {
		case <-timer.C:
			return stepAsk, nil
		case <-w.mailbox.wakeUps:
		case <-ctx.Done():
			return stepDone, w.endError(ctx)
		case <-w.engine.closing:
			return stepDone, w.engine.config.Closed
		}
	}
}

// handleMessages does what the messages say that came. For stepWait it returns when they ask for a
// request; zero: they do not.
func (w *waitLoop) handleMessages(r requester) (next step, askAt time.Time, err error) {
	m := w.takeMessages()
	switch {
	case m.askNow && w.mayAsk():
		return stepAsk, time.Time{}, nil
	case m.askNow:
		// A grant that came along is dropped, as the request finds the hold. So is a hold to join:
		// the request asks for another.
		return stepWait, time.Now(), nil
	case m.grant != nil || m.join != nil:
		next, err = r.handle(m)
	}
	return next, m.askAt, err
}

// takeMessages takes the grant and the hold to join out of the mailbox. The reasons to ask are only
// read: they stay until wait clears them, before the next request.
func (w *waitLoop) takeMessages() messages {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	m := w.mailbox.messages
	w.mailbox.messages.grant, w.mailbox.messages.join = nil, nil
	if w.mailbox.wakeUps == nil {
		w.mailbox.wakeUps = make(chan struct{}, 1)
	}
	return m
}

// record keeps an answer, for the error of a caller that gives up.
func (w *waitLoop) record(answer protocol.Answer) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.answer, w.holderContext, w.answered, w.failure = answer, nil, true, nil
}

// retry keeps and logs a failure, and returns when the next request is due.
func (w *waitLoop) retry(ctx context.Context, sent time.Time, err error, message string) (due time.Time) {
	if !isOver(ctx) { // otherwise the request failed because its caller gave up
		w.engine.mu.Lock()
		w.failure = err
		w.engine.mu.Unlock()
	}
	w.failures++
	w.engine.config.Logger.Warn(message, "name", w.call.name, "error", err)
	w.call.observeRetry(err)
	return sent.Add(backoff(w.failures))
}

// beginWaiting begins or continues to wait, after the answer to a request that was sent at a
// moment. The name to watch is nil where no messages can come. The results are those of subscribe.
func (w *waitLoop) beginWaiting(ctx context.Context, watched protocol.Subject, answer protocol.Answer,
	sent time.Time) (subscribed, missed bool, err error) {
	w.record(answer)
	w.failures = 0
	if !w.counted {
		w.counted = true
		w.subscription().addWaiter() // it keeps the subscription open
	}
	if watched == nil {
		return false, false, nil
	}
	return w.subscribe(ctx, watched, sent)
}

// subscribe makes messages about a name come. Subscribed reports whether they do; if not, err says
// why. Missed tells that one may have been lost between the request and the subscription: then the
// goroutine must ask again.
func (w *waitLoop) subscribe(ctx context.Context, watched protocol.Subject, sent time.Time) (subscribed, missed bool,
	err error) {
	since, err := w.subscription().ensureSubscribed(ctx, watched) // zero if it fails
	isNew := since != w.subscribedSince
	missed = isNew && !since.Before(sent) // a message between sent and since reached nobody
	w.subscribedSince = since
	return !since.IsZero(), missed, err
}

// endError is the error of a wait that its caller's context ended, or that is the victim of
// a deadlock.
func (w *waitLoop) endError(ctx context.Context) error {
	if cycle := (*deadlock.Cycle)(nil); errors.As(context.Cause(ctx), &cycle) {
		return w.endErrorBy(cycle) // the caller's own context is not over
	}
	return w.endErrorBy(protocol.EndOf(ctx))
}

// endErrorBy is the error of a wait that something ended.
func (w *waitLoop) endErrorBy(err error) error {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return &WaitFailure{
		Kind: w.call.kind, Err: err, Waited: time.Since(w.call.start),
		Answer: w.answer, Answered: w.answered, Failure: w.failure, holderContext: w.holderContext,
	}
}

// boundedWait returns a context for the waiting of one call, for at most so long; 0 adds no bound.
// Its cause is then protocol.ErrWaitOver. The caller must call cancel.
func boundedWait(ctx context.Context, most time.Duration) (waiting context.Context, cancel context.CancelFunc) {
	if most == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, most, protocol.ErrWaitOver)
}

// isOver reports whether ctx is over. Its deadline counts too: a request fails at the deadline, and
// ctx may say so a moment later.
func isOver(ctx context.Context) bool {
	end, hasEnd := ctx.Deadline()
	return ctx.Err() != nil || hasEnd && !time.Now().Before(end)
}

// orEnded returns err, or that ctx ended the call if err is a failure that waiting could cure. A
// request fails at the deadline of ctx, or with its cancellation, and says what its own timer says.
// So this alone decides for all calls of a few requests, by ctx.
func (e *Engine) orEnded(ctx context.Context, since time.Time, err error) error {
	var part *PartError
	if errors.As(err, &part) {
		if ended := e.orEnded(ctx, since, part.Err); !errors.Is(ended, part.Err) {
			return &PartError{part.Name, ended}
		}
		return err
	}
	var failure *protocol.Failure
	if !errors.As(err, &failure) || !failure.Reason.Passing() || !e.hasEnded(ctx) {
		return err
	}
	return &WaitFailure{Err: protocol.EndOf(ctx), Waited: time.Since(since), Failure: failure}
}

// hasEnded reports whether ctx is over, or will be in a moment: a request may be given up a little
// before the deadline. It waits for that moment, as ctx has its cause then.
func (e *Engine) hasEnded(ctx context.Context) bool {
	const early = 10 * time.Millisecond
	if end, ok := ctx.Deadline(); ctx.Err() == nil && (!ok || time.Until(end) > early) {
		return false
	}
	e.pause(ctx, time.Second)
	return true
}

// backoff is how long to wait after so many failures in a row, at least 1: 40 ms at first and a
// second at last, +-20 %.
func backoff(failures int) time.Duration {
	return jitter(min(20*time.Millisecond<<min(failures, 6), time.Second))
}

package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A mailbox is what messages said to one goroutine since its last request. Its fields are guarded
// by the engine's mutex.
type mailbox struct {
	messages messages
	woken    chan struct{} // holds one; nil until the goroutine pauses for the first time
}

type messages struct {
	grant *protocol.Grant // the hand-over to its ticket
	join  *hold           // a hold of this process, which may be joined
	askAt time.Time       // zero: no message said when to ask
	gap   bool            // messages may have been missed: it asks at once
}

// wake says that there are messages. The engine's mutex is held.
func (m *mailbox) wake() {
	select {
	case m.woken <- struct{}{}:
	default: // it was woken before, or has no channel yet: it reads the messages before it pauses
	}
}

// A step is what a goroutine that waits does next.
type step int

const (
	stepWait step = iota // it waits for a moment, or for a message
	stepAsk              // it asks at once
	stepDone             // it waits no more
)

// An asker is what differs between goroutines that wait.
type asker interface {
	// request sends a request under its ticket, and tells what to do next and, for stepWait, until
	// when.
	request(ctx context.Context) (next step, at time.Time, err error)

	// handle takes a hand-over, or a hold to join, and tells what to do next.
	handle(m messages) (next step, err error)
}

// A waitLoop is the waiting of one goroutine at a time: of an attempt or of a watcher.
type waitLoop struct {
	engine *Engine
	name   string
	since  time.Time // when the caller began to wait

	// Owned by the goroutine that waits.
	failures        int       // requests in a row without an answer
	counted         bool      // it counts among the waiters of the subscription
	reported        bool      // the observer knows that it waits
	subscribedSince time.Time // what the last ensureSubscribed returned

	// Guarded by the engine's mutex.
	mailbox  mailbox
	answer   protocol.Answer // the last one
	answered bool            // whether there is one
	failure  error           // of the last request, if it failed
}

// wait asks again and again until the asker is done, ctx ends or the engine is closed. The caller
// has sent the first request, which said what to do next.
func (w *waitLoop) wait(ctx context.Context, a asker, next step, at time.Time) (err error) {
	defer w.stop()
	for next != stepDone && err == nil {
		if next == stepWait {
			next, err = w.pause(ctx, a, at)
			continue
		}
		w.engine.mu.Lock()
		w.mailbox.messages.askAt, w.mailbox.messages.gap = time.Time{}, false // it asks now
		w.engine.mu.Unlock()
		next, at, err = a.request(ctx)
	}
	return err
}

// stop ends the waiting of a goroutine; another one may begin.
func (w *waitLoop) stop() {
	if w.counted {
		w.engine.subscription.removeWaiter()
	}
	w.failures, w.counted, w.reported, w.subscribedSince = 0, false, false, time.Time{}
}

// pause waits for the moment of the next request, for a message, or for the end of waiting.
func (w *waitLoop) pause(ctx context.Context, a asker, at time.Time) (step, error) {
	e := w.engine
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	for {
		m := w.read()
		if m.gap {
			return stepAsk, nil
		}
		if m.grant != nil || m.join != nil {
			if next, err := a.handle(m); next != stepWait || err != nil {
				return next, err
			}
		}
		if !m.askAt.IsZero() && m.askAt.Before(at) {
			at = m.askAt
			timer.Reset(time.Until(at))
		}
		select {
		case <-timer.C:
			return stepAsk, nil
		case <-w.mailbox.woken:
		case <-ctx.Done():
			return stepDone, w.ended(ctx)
		case <-e.closing:
			return stepDone, e.config.Closed
		}
	}
}

// read takes the messages out of the mailbox. The time of the next request stays until that
// request.
func (w *waitLoop) read() messages {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	m := w.mailbox.messages
	w.mailbox.messages.grant, w.mailbox.messages.join = nil, nil
	if w.mailbox.woken == nil {
		w.mailbox.woken = make(chan struct{}, 1)
	}
	return m
}

// record keeps an answer, for the error of a caller that gives up.
func (w *waitLoop) record(answer protocol.Answer) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.answer, w.answered, w.failure = answer, true, nil
}

// retry keeps a failure, logs it as the message says, and returns when to ask again.
func (w *waitLoop) retry(ctx context.Context, sent time.Time, err error, message string) time.Time {
	if !isOver(ctx) { // otherwise the request failed because its caller gave up
		w.engine.mu.Lock()
		w.failure = err
		w.engine.mu.Unlock()
	}
	w.failures++
	w.engine.config.Logger.Warn(message, "name", w.name, "error", err)
	w.engine.observe(Event{Kind: Retried, Name: w.name, Err: err})
	return sent.Add(backoff(w.failures))
}

// listen begins to wait after an answer. It keeps the answer, counts the goroutine among the
// waiters of the subscription, and subscribes to messages about a name; about is nil where none can
// come. Subscribed tells whether messages come. Missed tells that a message may have been lost
// between the request and the subscription: then the goroutine must ask again.
func (w *waitLoop) listen(ctx context.Context, about protocol.Watched, answer protocol.Answer, sent time.Time) (subscribed, missed bool, err error) {
	w.record(answer)
	w.failures = 0
	if !w.counted {
		w.counted = true
		w.engine.subscription.addWaiter()
	}
	if about == nil {
		return false, false, nil
	}
	since, err := w.engine.subscription.ensureSubscribed(ctx, about)
	missed = !since.Before(sent) && since != w.subscribedSince // new, and not older than the request
	w.subscribedSince = since
	return !since.IsZero(), missed, err
}

// report tells the observer, once for each wait, that a caller has to wait.
func (w *waitLoop) report(event Event) {
	if !w.reported {
		w.reported = true
		w.engine.observe(event)
	}
}

// ended is the error of a wait that its caller ended.
func (w *waitLoop) ended(ctx context.Context) error {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return &WaitEnded{
		Err: protocol.EndOf(ctx), Waited: time.Since(w.since),
		Answer: w.answer, Answered: w.answered, Failure: w.failure,
	}
}

// isOver tells whether a wait is over. The deadline counts too: a request fails at it, and its
// context may notice a moment later.
func isOver(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
}

// backoff is the pause after so many failures in a row, at least 1: 40 ms at first and a second at
// last, +-20 %.
func backoff(failures int) time.Duration {
	return jitter(min(20*time.Millisecond<<min(failures, 6), time.Second))
}

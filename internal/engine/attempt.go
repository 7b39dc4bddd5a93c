package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An attempt is one try to hold a name, from its first request until it holds or is abandoned. One goroutine at a time
// runs it; what the mutex guards is said.
type attempt struct {
	lock      *Lock
	ticket    protocol.Ticket
	since     time.Time
	release   *protocol.Ticket // a hold to give back with the first request
	takesOver bool             // what it replaced comes back when it is abandoned

	// The server accepted the number of permits before, from this attempt or from one that its
	// caller waited behind. If it names another number now, the name was resized.
	permitsAccepted bool

	inLine        bool      // by the last answer
	answeredAsk   time.Time // of the last request that was answered
	serverTime    int64     // and the server's time in its answer
	mayApplyUntil time.Time // until then, a request without an answer may still take effect; zero: none may

	// Guarded by the engine's mutex.
	messages messages
	joinable *hold         // of the last messages that was read
	woken    chan struct{} // of one; made by the first to wait
	won      bool          // it holds: nothing to abandon
	answer   protocol.Answer
	answered bool
	failure  error
}

// mail is what messages said since the last request.
type messages struct {
	grant *protocol.Grant
	askAt time.Time
	gap   bool
	join  *hold // of this process, which may be joined
}

// ID makes 128 random bits.
func ID() protocol.ID {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // it never fails
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], bits[:])
	return protocol.ID(text[:])
}

// newAttempt starts a try. The mutex may be held.
func (l *Lock) newAttempt(block int64) *attempt {
	return &attempt{lock: l, ticket: protocol.Ticket{ID: ID(), Block: block, Weight: l.weight}, since: time.Now()}
}

// wake tells the attempt that there are messages. It is called with the mutex held.
func (a *attempt) wake() {
	select {
	case a.woken <- struct{}{}: // nobody waits yet where there is no channel: the messages are read before waiting
	default:
	}
}

// ask sends one request and takes its answer down.
func (a *attempt) ask(ctx context.Context, join bool, send func(context.Context, protocol.Ask) (protocol.Answer, error)) (protocol.Answer, time.Time, error) {
	o := &a.lock.options
	if err := a.lock.engine.protocol.Ready(ctx, a.lock.spec.Name); err != nil {
		return protocol.Answer{}, time.Now(), err
	}
	sent := time.Now()
	ask := protocol.Ask{
		Ticket:   a.ticket,
		Join:     join,
		InLine:   a.inLine,
		TTL:      max(o.TTL, o.MinHold),
		Release:  a.release,
		Deadline: sent.Add(timeout(o.TTL)),
	}
	answer, err := send(ctx, ask)
	if err != nil {
		var failure *protocol.Failure
		if errors.As(err, &failure) {
			if failure.Unknown {
				a.mayApplyUntil = ask.Deadline
			}
			err = failure.Or(sent.Before(a.mayApplyUntil))
		}
		return answer, sent, err
	}
	a.release = nil
	a.answeredAsk, a.serverTime = sent, answer.Server
	return answer, sent, nil
}

// try asks once.
func (a *attempt) try(ctx context.Context, send func(context.Context, protocol.Ask) (protocol.Answer, error)) (*hold, error) {
	e := a.lock.engine
	for {
		if err := e.check(ctx); err != nil {
			return nil, err
		}
		answer, sent, err := a.ask(ctx, false, send)
		if err != nil {
			return nil, err
		}
		if answer.Status != protocol.Held {
			return nil, &Busy{Kind: a.lock.spec.Kind, Answer: answer}
		}
		if h, err := e.newHold(a, answer.Token, answer.Block, answer.Server, sent, a.lock.options.TTL); h != nil || err != nil {
			return h, err
		}
	}
}

// check refuses what is over before it began.
func (e *Engine) check(ctx context.Context) error {
	select {
	case <-e.closing:
		return e.config.Closed
	default:
	}
	if ctx.Err() != nil {
		return &WaitEnded{Err: protocol.EndOf(ctx), Answered: true}
	}
	return nil
}

// run asks until it holds or until ctx ends. See the package document for the states.
func (a *attempt) run(ctx context.Context) (*hold, error) {
	e, l := a.lock.engine, a.lock
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	if !a.inLine && a.mayApplyUntil.IsZero() {
		a.ticket.Deaf = e.subscription.recentlyDenied()
	}
	waiting, reported := false, false
	defer func() {
		if waiting {
			e.subscription.removeWaiter()
		}
	}()
	var subscribedSince time.Time
	for failures := 0; ; {
		e.mu.Lock()
		a.messages.askAt, a.messages.gap = time.Time{}, false
		e.attempts[a.ticket.ID] = a
		e.mu.Unlock()

		answer, sent, err := a.ask(ctx, true, a.lock.resource.Ask)
		if a.resized(err) {
			continue
		}
		e.mu.Lock()
		if err == nil {
			a.answer, a.answered, a.failure = answer, true, nil
			a.permitsAccepted = true
		} else if !isOver(ctx) { // else it failed because the caller gave up
			a.failure = err
		}
		e.mu.Unlock()
		var next time.Time
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, a.waitEnded(ctx)
		case err != nil:
			var failure *protocol.Failure
			if !errors.As(err, &failure) || !failure.Reason.Passing() && (!a.inLine || failure.Reason == protocol.Denied) {
				return nil, err
			}
			failures++
			next = sent.Add(backoff(failures))
			e.config.Logger.Warn("holdfast: asking again", "name", l.spec.Name, "error", err)
			e.observe(Event{Kind: Retried, Name: l.spec.Name, Err: err})
		case answer.Status == protocol.Held:
			h, err := e.newHold(a, answer.Token, answer.Block, answer.Server, sent, l.options.TTL)
			if h == nil && err == nil {
				continue // the answer came when its trust was over
			}
			return h, err
		default:
			subscribed := false
			failures = 0
			a.inLine = answer.Status == protocol.Queued
			if !waiting {
				waiting = true
				e.subscription.addWaiter()
			}
			if !a.ticket.Deaf {
				since, listenErr := e.subscription.ensureSubscribed(ctx, a.lock.resource)
				missed := !since.Before(sent) && since != subscribedSince // on a fake clock they may be one moment
				subscribedSince = since
				if a.withoutMessages(listenErr) || missed {
					continue // without messages from now on, or a message may have been missed between joining and listening
				}
				subscribed = !since.IsZero()
			}
			if !reported { // not before it is subscribed: until then it is passed over
				reported = true
				e.observe(Event{Kind: Waiting, Name: l.spec.Name, Left: answer.Remaining})
			}
			next = sent.Add(a.askAfter(answer, subscribed))
			if last, ok := a.lastAsk(ctx); ok && sent.Before(last) {
				next = earlier(next, last)
			}
		}
		h, err := a.wait(ctx, next)
		if h != nil || err != nil {
			return h, err
		}
	}
}

// isOver tells whether a wait is. A request's deadline, which comes from that of its context, may be seen before the context's own.
func isOver(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
}

// backoff grows from 20 ms to a second.
func backoff(failures int) time.Duration {
	return jitter(min(20*time.Millisecond<<min(failures, 6), time.Second))
}

// askAfter is how long to wait before asking again: the slow, jittered rate that is the sign of life, or sooner: at the
// known end of the hold, those behind the first a little later each, because one of the first may not be alive.
func (a *attempt) askAfter(answer protocol.Answer, subscribed bool) time.Duration {
	d := jitter(askEvery)
	if !subscribed {
		d = jitter(claim(a.lock.options.TTL) / 3)
	}
	end := answer.Remaining + time.Millisecond
	if answer.Remaining < 0 { // not told: it may be a hand-over that nobody takes up
		end = jitter(claim(a.lock.options.TTL))
	}
	end += time.Duration(answer.Waiters) * 20 * time.Millisecond
	if !a.lock.engine.features.Queue {
		end += jitter(10 * time.Millisecond)
	}
	return min(d, end)
}

// lastAsk is when to ask once more before a wait is over, with time for the answer: a caller who waited in vain is to be told who
// holds now, or that the server does not answer any more.
func (a *attempt) lastAsk(ctx context.Context) (at time.Time, ok bool) {
	end, ok := ctx.Deadline()
	return end.Add(-timeout(a.lock.options.TTL) - 100*time.Millisecond), ok
}

// withoutMessages changes to a ticket without messages when listening is not allowed: a hand-over must not wait for a waiter that gets no message.
func (a *attempt) withoutMessages(err error) bool {
	if a.ticket.Deaf || !isDenied(err) {
		return false
	}
	e := a.lock.engine
	e.config.Logger.Warn("holdfast: may not subscribe; waiting by asking", "name", a.lock.spec.Name, "error", err)
	a.replace(a.lock, true)
	return true
}

// resized changes to the number of permits that the server named in err, if it accepted another
// before. The payload of a ticket says the number and never changes, so the ticket is new as well.
// No place is given up for that: the server does not refuse a ticket that holds or stands in line.
func (a *attempt) resized(err error) bool {
	l := a.lock.resized(err)
	if l == nil || !a.permitsAccepted {
		return false
	}
	e := a.lock.engine
	e.mu.Lock()
	a.answered, a.failure = true, nil
	// The pool serves the waiters that it has. A new caller with the old number asks for itself, as
	// the server must see that number to refuse it.
	delete(e.pools, a.lock.poolKey())
	e.mu.Unlock()
	a.replace(l, a.ticket.Deaf)
	return true
}

// replace changes to a new ticket. The cleanup gives back what the server has of the old one, or may
// yet get. A hand-over to the old one is dropped: it is none to the new one.
func (a *attempt) replace(l *Lock, noMessages bool) {
	e, old, request, mayApplyUntil := l.engine, a.lock, protocol.Free{Ticket: a.ticket}, a.mayApplyUntil
	e.mu.Lock()
	delete(e.attempts, a.ticket.ID)
	a.ticket.ID, a.ticket.Deaf = ID(), noMessages
	a.messages.grant = nil
	e.mu.Unlock()
	if a.serverTime != 0 || !mayApplyUntil.IsZero() {
		until := time.Now().Add(max(old.options.TTL, old.options.MinHold, placeLife))
		e.cleanup(old, request, until, mayApplyUntil)
	}
	a.lock, a.inLine, a.mayApplyUntil, a.answeredAsk, a.serverTime = l, false, time.Time{}, time.Time{}, 0
}

// wait waits for the moment of the next request, for a message, or for the end of waiting.
func (a *attempt) wait(ctx context.Context, next time.Time) (*hold, error) {
	e := a.lock.engine
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		e.mu.Lock()
		mail := a.messages
		a.messages.grant, a.messages.join = nil, nil
		a.joinable = mail.join
		if a.woken == nil {
			a.woken = make(chan struct{}, 1)
		}
		e.mu.Unlock()
		if mail.gap {
			return nil, nil
		}
		if g := mail.grant; g != nil && a.serverTime != 0 {
			if from, ok := a.trustsGrant(g); ok {
				return e.newHold(a, g.Token, g.Block, g.At, from, g.Claim)
			}
			return nil, nil // the server confirms, or tells that it is over
		}
		if mail.join != nil {
			return nil, errJoin
		}
		if !mail.askAt.IsZero() && mail.askAt.Before(next) {
			next = mail.askAt
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
			return nil, nil
		case <-a.woken:
		case <-ctx.Done():
			return nil, a.waitEnded(ctx)
		case <-e.closing:
			return nil, e.config.Closed
		}
	}
}

// trustsGrant tells whether a hand-over is worth trust without another round trip, and from which local moment its claim
// counts: the earliest at which the server's clock can have shown the time of the grant. Our last request was sent
// before the server's clock showed a.server, so it showed g.At no earlier than that much after the sending.
func (a *attempt) trustsGrant(g *protocol.Grant) (from time.Time, ok bool) {
	o := &a.lock.options
	now := time.Now()
	since := time.Duration(g.At-a.serverTime) * time.Microsecond
	from = a.answeredAsk.Add(since - since/100) // less the drift of two clocks meanwhile
	left := from.Add(g.Claim - margin(g.Claim)).Sub(now)
	stepped := g.At < a.serverTime || from.After(now) // its clock was set between answer and grant
	forged := g.Claim > a.lock.spec.Claim             // no server gives more than was asked for
	return from, !stepped && !forged && left >= g.Claim/2 && !past(from.Add(g.Claim-margin(g.Claim)), now) && !o.Fixed && o.MinHold == 0 && !a.lock.engine.features.Confirm
}

// waitEnded is the error of a wait that its caller ended.
func (a *attempt) waitEnded(ctx context.Context) error {
	e := a.lock.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return &WaitEnded{Err: protocol.EndOf(ctx), Waited: time.Since(a.since), Answer: a.answer, Answered: a.answered, Failure: a.failure}
}

// abandon takes back what the attempt queued or won, or may yet: in the background, until that is certain. The
// engine's mutex is held.
func (a *attempt) abandon() {
	e := a.lock.engine
	delete(e.attempts, a.ticket.ID)
	if a.won {
		return
	}
	until := time.Now().Add(max(a.lock.options.TTL, a.lock.options.MinHold, placeLife))
	if a.release != nil {
		e.cleanup(a.lock, protocol.Free{Ticket: *a.release}, until, time.Time{})
	}
	if a.inLine || !a.mayApplyUntil.IsZero() {
		e.cleanup(a.lock, protocol.Free{Ticket: a.ticket, Undo: a.takesOver}, until, a.mayApplyUntil)
	}
}

// abandon abandons attempts that did not win.
func (e *Engine) abandon(attempts []*attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range attempts {
		a.abandon()
	}
}

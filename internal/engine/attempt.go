package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An attemptState is where an attempt is in its life. See the package document.
type attemptState int

const (
	attemptNew       attemptState = iota // no answer said that the server has anything of its ticket
	attemptKnown                         // the server has something of its ticket: a place, or a hold not trusted here
	attemptHeld                          // it won: there is nothing to abandon
	attemptAbandoned                     // what the server has, or may get, is given back
)

// attemptMoves are the states that may follow each state.
var attemptMoves = [...][]attemptState{
	attemptNew:       {attemptNew, attemptKnown, attemptHeld, attemptAbandoned},
	attemptKnown:     {attemptNew, attemptKnown, attemptHeld, attemptAbandoned},
	attemptHeld:      {},
	attemptAbandoned: {},
}

func (s attemptState) String() string {
	return [...]string{"new", "known", "held", "abandoned"}[s]
}

// An attempt is one try to hold a name, from its first request until it holds or is abandoned. It
// is the requester of its waitLoop.
//
// One goroutine at a time runs an attempt: its caller's or, in a pool, the leader. Only that
// goroutine reads and writes the fields below, so no mutex guards them. The attempt passes to the
// next leader by a delivery. Other goroutines use only what the waitLoop says is guarded by the
// engine's mutex: they put messages into the mailbox, and read the last answer.
type attempt struct {
	waitLoop
	lock    *Lock // what it asks for; a Resize changes the number of permits
	state   attemptState
	ticket  protocol.Ticket  // its identity at the server
	release *protocol.Ticket // a hold to give back with the first request that is answered
	leaving bool             // of a kept place: nobody waits with the ticket after the next request

	// The server accepted the number of permits before, from this attempt or from one that its
	// caller waited behind. If it names another number now, the name was resized.
	permitsAccepted bool

	clock         clockSample // of the last request that was answered
	mayApplyUntil time.Time   // until then a request without an answer may take effect; zero: none may

	evidence *evidence // the leases that its ticket names; nil: it names none

	queued       bool      // an answer said that it must wait
	recallsSince time.Time // since when messages tell that others ask for its hold; zero: they do not

	hold   *hold // what it won; nil before
	opened *hold // to readers: a hold of this process that the last messages named; nil: none
}

// newAttempt makes an attempt for a call. Its grant is to reserve so many fencing tokens (block).
// It sends nothing. The engine's mutex may be held.
func (l *Lock) newAttempt(c *call, block int64) *attempt {
	return &attempt{
		waitLoop: waitLoop{engine: l.engine, call: c, pace: l.pace},
		lock:     l,
		ticket:   protocol.Ticket{ID: protocol.NewID(), Block: block, Weight: l.weight, Wanted: l.options.Wanted},
	}
}

// to moves the attempt to another state. It returns false and changes nothing if the present state
// does not allow that. Only the goroutine that runs the attempt calls it; the engine's mutex may be
// held.
func (a *attempt) to(next attemptState) bool {
	if !slices.Contains(attemptMoves[a.state], next) {
		return false
	}
	a.state = next
	return true
}

// run asks until the attempt holds. The error is errJoin for a leader of readers that may join a
// hold of this process. After an error the attempt must be run again, passed on or abandoned.
func (a *attempt) run(ctx context.Context) (*hold, error) {
	if err := a.engine.check(ctx); err != nil {
		return nil, a.notRunError(ctx, err)
	}
	if a.state == attemptNew && a.mayApplyUntil.IsZero() { // the server cannot know the ticket yet
		a.ticket.NoMessages = a.engine.subscription.recentlyDenied()
		if a.engine.config.Trace != nil {
			a.ticket.Trace = a.engine.traceOf(a.call.ctx)
		}
		defer a.hearRecalls(ctx)()
	}
	err := a.wait(ctx, a, a.ticket.ID)
	return a.hold, err
}

// notRunError is the error of a run that sends nothing. A goroutine of a pool waited before, and
// another leader may have asked with this attempt: then the error tells of both.
func (a *attempt) notRunError(ctx context.Context, err error) error {
	var ended *WaitFailure
	if !errors.As(err, &ended) {
		return err
	}
	e := a.engine
	e.mu.Lock()
	asked := a.answered || a.failure != nil
	e.mu.Unlock()
	if asked {
		return a.endError(ctx)
	}
	ended.Waited = time.Since(a.call.start)
	return ended
}

// request asks, and tells by the answer what to do next.
func (a *attempt) request(ctx context.Context) (step, time.Time, error) {
	if a.evidence != nil {
		a.renewEvidence()
	}
	answer, sent, err := a.ask(ctx, true)
	if err != nil {
		return a.afterFailure(ctx, sent, err)
	}
	a.permitsAccepted = true
	if answer.Status == protocol.Held {
		next, err := a.becomeHolder(answer, sent, a.lock.options.TTL)
		if next == stepAsk {
			a.record(answer) // for the error of a caller that gives up before the next answer
		}
		return next, time.Time{}, err
	}
	return a.mustWait(ctx, answer, sent)
}

// ask sends one request. It keeps what the answer says about the server's clock; without an answer,
// until when the request may still take effect. Join tells the server to put the ticket into its
// queue if others hold.
func (a *attempt) ask(ctx context.Context, join bool) (answer protocol.Answer, sent time.Time, err error) {
	if err := a.engine.protocol.Ready(ctx, a.lock.name); err != nil {
		return protocol.Answer{}, time.Now(), err
	}
	sent = time.Now()
	ask := protocol.Ask{
		Ticket:   a.ticket,
		Join:     join,
		InLine:   a.state == attemptKnown,
		Leaving:  a.leaving,
		TTL:      a.lock.grantTTL,
		Release:  a.release,
		Deadline: sent.Add(a.lock.timeout),
		Pace:     &a.pace,
	}
	a.pace.Sent(sent)
	answer, err = a.lock.resource().Ask(ctx, ask)
	if err != nil {
		var failure *protocol.Failure
		if errors.As(err, &failure) {
			if failure.Unknown {
				a.mayApplyUntil = ask.Deadline
			}
			// A refusal says nothing about an earlier request that may still take effect.
			err = failure.OrUnknown(sent.Before(a.mayApplyUntil))
		}
		return answer, sent, err
	}
	a.release = nil
	a.clock = clockSample{sent, answer.Server}
	return answer, sent, nil
}

// becomeHolder makes the hold of an answer or a hand-over, which lasts for ttl from a local moment
// on, and gives it to the watchdog. The engine's mutex is not held.
func (a *attempt) becomeHolder(answer protocol.Answer, from time.Time, ttl time.Duration) (step, error) {
	e, h := a.engine, a.newHold(answer, from, ttl)
	e.mu.Lock()
	defer e.mu.Unlock()
	// If this hold is of no use, the server has it all the same. A known attempt is one of which
	// the server has something: so abandon gives the hold back.
	if e.closed {
		a.to(attemptKnown)
		return stepDone, e.config.Closed
	}
	if h == nil { // trust in it was over when it arrived: the next request renews it
		a.to(attemptKnown)
		return stepAsk, nil
	}
	a.to(attemptHeld)
	delete(e.waits, a.ticket.ID)
	e.holds.add(h)
	a.hold = h
	if a.ticket.Retain {
		h.retention = &retainState{heardSince: a.recallsSince, recalled: a.queued || a.mailbox.messages.recalled}
		if h.retention.recalled {
			e.pauseRetaining(h)
		}
	}
	h.isTold, h.wanted = a.ticket.Retain || a.ticket.Wanted, a.mailbox.messages.recalled
	if a.lock.options.Wanted && !h.wanted {
		e.hearInBackground(h, a.queued || a.recallsSince.IsZero()) // others may have asked before messages told of it
	}
	if a.mailbox.messages.askNow { // a message about the hold may have come before it, or been missed
		e.queryInBackground(h)
	}
	return stepDone, nil
}

// afterFailure reports whether to ask again after a failure, and when. A resized name is asked for
// at once, and so is one of which the ticket's hold was broken.
func (a *attempt) afterFailure(ctx context.Context, sent time.Time, err error) (step, time.Time, error) {
	var evicted *protocol.Evicted
	switch {
	case errors.As(err, &evicted):
		a.to(attemptKnown) // the server remembers the ticket
		return stepDone, time.Time{}, a.endErrorBy(err)
	case a.adoptResize(err), a.dropBroken(err):
		return stepAsk, time.Time{}, nil
	}
	if ctx.Err() != nil {
		return stepDone, time.Time{}, a.endError(ctx)
	}
	if !a.mayPass(err) {
		return stepDone, time.Time{}, err
	}
	return stepWait, a.retry(ctx, sent, err, "holdfast: asking again"), nil
}

// mustWait makes messages come after an answer that others hold, and tells when to ask again.
func (a *attempt) mustWait(ctx context.Context, answer protocol.Answer, sent time.Time) (step, time.Time, error) {
	a.queued = true
	if answer.Status == protocol.Queued {
		a.to(attemptKnown)
	} else {
		a.to(attemptNew)
	}
	var about protocol.Subject
	if !a.ticket.NoMessages {
		about = a.lock.resource()
	}
	subscribed, missed, err := a.beginWaiting(ctx, about, answer, sent)
	if err != nil && a.switchToNoMessages(err) {
		return stepAsk, time.Time{}, nil // with the new ticket
	}
	if missed {
		return stepAsk, time.Time{}, nil // what was missed may be a hand-over
	}
	// After any other err the attempt goes on without messages: askAfter makes it ask more often.
	//
	// The observer learns only now that the caller waits: a hand-over before the subscription would
	// have let it in with the next request.
	a.call.observeWait(Waiting)
	next := sent.Add(a.askAfter(answer, subscribed))
	if last, ok := a.lastAsk(ctx); ok && sent.Before(last) {
		next = earlier(next, last)
	}
	return stepWait, next, nil
}

// handle takes a grant, or tells the leader of a pool that there is a hold to join.
func (a *attempt) handle(m messages) (step, error) {
	a.opened = m.join
	switch {
	case m.grant != nil && a.clock.isKnown():
		return a.takeGrant(m.grant) // a hold to join that came along is dropped
	case m.join != nil:
		return stepDone, errJoin
	}
	// A grant before any answer is dropped: there is no clock sample to measure it against. The
	// next request finds the hold.
	return stepWait, nil
}

// takeGrant holds by the message of a hand-over, if that is worth trust. Else it asks the server,
// which confirms the hand-over or tells that it is over.
func (a *attempt) takeGrant(g *protocol.Grant) (step, error) {
	from, trusted := a.trustsGrant(g)
	if !trusted {
		return stepAsk, nil
	}
	return a.becomeHolder(protocol.Answer{Token: g.Token, Block: g.Block, Server: g.At}, from, g.Claim)
}

// try sends one request, and does not wait if others hold. It repeats the request only if trust in
// the hold was over when the answer arrived, or if the hold was broken since. If the holder may not
// use its hold, it was told to give it back: then try asks up to five times more, within 31 ms.
func (a *attempt) try(ctx context.Context) (*hold, error) {
	e := a.engine
	if a.mayApplyUntil.IsZero() { // else the server may know the ticket, which never changes
		a.ticket.Trace = e.traceOf(a.call.ctx)
		defer a.hearRecalls(ctx)()
	}
	for pause := time.Millisecond; ; pause *= 2 {
		e.awaitPace(ctx, &a.pace)
		if err := e.check(ctx); err != nil {
			return nil, err
		}
		answer, sent, err := a.ask(ctx, false)
		if a.dropBroken(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if answer.Status != protocol.Held {
			if a.lock.awaitRecall(ctx, answer, pause) {
				continue
			}
			return nil, &BusyError{Kind: a.lock.spec.Kind, Answer: answer}
		}
		if next, err := a.becomeHolder(answer, sent, a.lock.options.TTL); next == stepDone {
			return a.hold, err // nil if the engine is closed
		}
	}
}

// beginLease ends an attempt without a pool, after run or try: it makes the first lease of the
// hold, or abandons the attempt.
func (a *attempt) beginLease(h *hold, err error) (*Lease, error) {
	a.engine.mu.Lock()
	defer a.engine.mu.Unlock()
	if err != nil {
		a.abandon()
		return nil, err
	}
	return a.lock.beginHold(a.call, h, nil)
}

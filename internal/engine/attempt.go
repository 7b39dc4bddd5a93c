package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An attemptState is where an attempt is in its life. See the package document.
type attemptState int

const (
	attemptNew       attemptState = iota // no answer said that the server has anything of its ticket
	attemptQueued                        // the server has a place of its ticket, or a hold that is not trusted
	attemptHeld                          // it won: there is nothing to abandon
	attemptAbandoned                     // what the server has, or may get, is given back
)

// attemptMoves are the states that may follow each state.
var attemptMoves = [...][]attemptState{
	attemptNew:       {attemptNew, attemptQueued, attemptHeld, attemptAbandoned},
	attemptQueued:    {attemptNew, attemptQueued, attemptHeld, attemptAbandoned},
	attemptHeld:      {},
	attemptAbandoned: {},
}

func (s attemptState) String() string {
	return [...]string{"new", "queued", "held", "abandoned"}[s]
}

// An attempt is one try to hold a name, from its first request until it holds or is abandoned. One
// goroutine at a time runs it, and owns its fields; the fields of its waitLoop say which ones the
// engine's mutex guards. It is a requester.
type attempt struct {
	waitLoop
	state     attemptState
	lock      *Lock
	ticket    protocol.Ticket
	release   *protocol.Ticket // a hold to give back with the first request that is answered
	takesOver bool             // a Resume: the hold that it replaced comes back if it is abandoned

	// The server accepted the number of permits before, from this attempt or from one that its
	// caller waited behind. If it names another number now, the name was resized.
	permitsAccepted bool

	answeredAsk   time.Time // when the last request that was answered was sent
	serverTime    int64     // the server's time in its answer; 0: no answer came
	mayApplyUntil time.Time // until then a request without an answer may take effect; zero: none may

	hold     *hold // what it won; nil before
	joinable *hold // a hold of this process that the last messages named
}

// ID returns 128 random bits in base64url.
func ID() protocol.ID {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // it never fails
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], bits[:])
	return protocol.ID(text[:])
}

// newAttempt starts a try. The mutex may be held.
func (l *Lock) newAttempt(block int64) *attempt {
	return &attempt{
		waitLoop: waitLoop{engine: l.engine, name: l.spec.Name, since: time.Now()},
		lock:     l,
		ticket:   protocol.Ticket{ID: ID(), Block: block, Weight: l.weight},
	}
}

// to moves the attempt to another state. It returns false and changes nothing if the present state
// does not allow that. Only the goroutine that runs the attempt calls it.
func (a *attempt) to(next attemptState) bool {
	if !slices.Contains(attemptMoves[a.state], next) {
		return false
	}
	a.state = next
	return true
}

// check refuses a call on a closed engine, or under a ctx that is over.
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

// run asks until it holds or until ctx ends. See the package document.
func (a *attempt) run(ctx context.Context) (*hold, error) {
	e := a.engine
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	if a.state == attemptNew && a.mayApplyUntil.IsZero() {
		a.ticket.NoMessages = e.subscription.recentlyDenied()
	}
	e.mu.Lock()
	a.mailbox.clearAskNow() // also what came for an earlier leader of its pool
	e.mailboxes[a.ticket.ID] = &a.mailbox
	e.mu.Unlock()
	next, at, err := a.request(ctx)
	if next != stepDone {
		err = a.wait(ctx, a, next, at)
	}
	if err != nil {
		return nil, err
	}
	return a.hold, nil
}

// request asks, and takes the answer.
func (a *attempt) request(ctx context.Context) (step, time.Time, error) {
	answer, sent, err := a.ask(ctx, true, a.lock.resource.Ask)
	if err != nil {
		return a.failed(ctx, sent, err)
	}
	a.permitsAccepted = true
	if answer.Status == protocol.Held {
		next, err := a.won(answer.Token, answer.Block, answer.Server, sent, a.lock.options.TTL)
		if next == stepAsk {
			a.record(answer)
		}
		return next, time.Time{}, err
	}
	return a.mustWait(ctx, answer, sent)
}

// ask sends one request, and keeps the times of its answer.
func (a *attempt) ask(ctx context.Context, join bool, send func(context.Context, protocol.Ask) (protocol.Answer, error)) (protocol.Answer, time.Time, error) {
	o := &a.lock.options
	if err := a.engine.protocol.Ready(ctx, a.lock.spec.Name); err != nil {
		return protocol.Answer{}, time.Now(), err
	}
	sent := time.Now()
	ask := protocol.Ask{
		Ticket:   a.ticket,
		Join:     join,
		InLine:   a.state == attemptQueued,
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

// won makes the hold of an answer or a grant, and gives it to the watchdog. From is a local moment
// that is certainly before the grant; ttl counts from it. The attempt asks again when trust in the
// hold is over already.
func (a *attempt) won(token, block, server int64, from time.Time, ttl time.Duration) (step, error) {
	e, h := a.engine, a.newHold(token, block, server, from, ttl)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || h == nil {
		a.to(attemptQueued) // the server has a hold: abandon gives it back, and the next ask renews it
	}
	switch {
	case e.closed:
		return stepDone, e.config.Closed
	case h == nil:
		return stepAsk, nil
	}
	a.to(attemptHeld)
	delete(e.mailboxes, a.ticket.ID)
	e.watchdog.add(h)
	a.hold = h
	return stepDone, nil
}

// failed tells whether to ask again after a failure, and when.
func (a *attempt) failed(ctx context.Context, sent time.Time, err error) (step, time.Time, error) {
	if a.resized(err) {
		return stepAsk, time.Time{}, nil
	}
	if ctx.Err() != nil {
		return stepDone, time.Time{}, a.ended(ctx)
	}
	if !a.mayPass(err) {
		return stepDone, time.Time{}, err
	}
	return stepWait, a.retry(ctx, sent, err, "holdfast: asking again"), nil
}

// mayPass tells whether a failure may pass, so that it is worth asking again. A queued attempt
// keeps its place through every failure but a missing permission.
func (a *attempt) mayPass(err error) bool {
	var failure *protocol.Failure
	switch {
	case !errors.As(err, &failure):
		return false
	case failure.Reason.Passing():
		return true
	case failure.Reason == protocol.Denied:
		return false
	}
	return a.state == attemptQueued
}

// mustWait makes messages come after an answer that others hold, and tells when to ask again.
func (a *attempt) mustWait(ctx context.Context, answer protocol.Answer, sent time.Time) (step, time.Time, error) {
	if answer.Status == protocol.Queued {
		a.to(attemptQueued)
	} else {
		a.to(attemptNew)
	}
	var about protocol.Watched
	if !a.ticket.NoMessages {
		about = a.lock.resource
	}
	subscribed, missed, err := a.beginWaiting(ctx, about, answer, sent)
	if err != nil && a.withoutMessages(err) || missed {
		return stepAsk, time.Time{}, nil
	}
	// Only now does the caller really wait: a hand-over before the subscription passes it over.
	a.report(Event{Kind: Waiting, Name: a.name, Left: answer.Remaining})
	next := sent.Add(a.askAfter(answer, subscribed))
	if last, ok := a.lastAsk(ctx); ok && sent.Before(last) {
		next = earlier(next, last)
	}
	return stepWait, next, nil
}

// askAfter is how long to wait before asking again: the slow, jittered rate that is the sign of
// life, or until the known end of the hold. A waiter behind the first asks a little later, in case
// the first is dead.
func (a *attempt) askAfter(answer protocol.Answer, subscribed bool) time.Duration {
	d := jitter(askEvery)
	if !subscribed {
		d = jitter(claim(a.lock.options.TTL) / 3)
	}
	end := answer.Remaining + time.Millisecond
	if answer.Remaining < 0 { // not told: it may be a hand-over that nobody takes up
		end = jitter(claim(a.lock.options.TTL))
	}
	end += time.Duration(answer.Waiters) * askApart
	if !a.engine.features.Queue { // all waiters are first
		end += jitter(10 * time.Millisecond)
	}
	return min(d, end)
}

// lastAsk is when to ask once more before ctx ends, with time for the answer. So a caller that
// waited in vain learns the present holder, or that the server does not answer any more.
func (a *attempt) lastAsk(ctx context.Context) (at time.Time, ok bool) {
	end, ok := ctx.Deadline()
	return end.Add(-timeout(a.lock.options.TTL) - 100*time.Millisecond), ok
}

// withoutMessages changes to a ticket without messages when subscribing is not allowed: a hand-over
// must not wait for a process that no message reaches.
func (a *attempt) withoutMessages(err error) bool {
	if a.ticket.NoMessages || !isDenied(err) {
		return false
	}
	a.engine.config.Logger.Warn("holdfast: may not subscribe; waiting by asking", "name", a.name, "error", err)
	a.replace(a.lock, true)
	return true
}

// resized changes to the number of permits that the server named in err, if it accepted another
// before. The payload of a ticket says the number and never changes, so the ticket is new as well.
// No place is given up for that: the server does not refuse a ticket that holds or is queued.
func (a *attempt) resized(err error) bool {
	l := a.lock.resized(err)
	if l == nil || !a.permitsAccepted {
		return false
	}
	e := a.engine
	e.mu.Lock()
	a.answered, a.failure = true, nil
	// The pool serves the waiters that it has. A new caller with the old number asks for itself, as
	// the server must see that number to refuse it.
	delete(e.pools, a.lock.poolKey())
	e.mu.Unlock()
	a.replace(l, a.ticket.NoMessages)
	return true
}

// replace changes to a new ticket. A cleanup gives back what the server has of the old one, or may
// yet get. A hand-over to the old ticket is dropped: it is none to the new one.
func (a *attempt) replace(l *Lock, noMessages bool) {
	e, old, request, mayApplyUntil := a.engine, a.lock, protocol.Free{Ticket: a.ticket}, a.mayApplyUntil
	e.mu.Lock()
	delete(e.mailboxes, a.ticket.ID)
	a.ticket.ID, a.ticket.NoMessages = ID(), noMessages
	e.mailboxes[a.ticket.ID] = &a.mailbox
	a.mailbox.messages.grant = nil
	e.mu.Unlock()
	if a.serverTime != 0 || !mayApplyUntil.IsZero() {
		until := time.Now().Add(max(old.options.TTL, old.options.MinHold, placeLife))
		e.cleanup(old, request, until, mayApplyUntil)
	}
	a.to(attemptNew)
	a.lock, a.mayApplyUntil, a.answeredAsk, a.serverTime = l, time.Time{}, time.Time{}, 0
}

// handle takes a hand-over, or tells the leader of a pool that there is a hold to join.
func (a *attempt) handle(m messages) (step, error) {
	a.joinable = m.join
	if g := m.grant; g != nil && a.serverTime != 0 {
		from, ok := a.trustsGrant(g)
		if !ok {
			return stepAsk, nil // the server confirms, or tells that it is over
		}
		return a.won(g.Token, g.Block, g.At, from, g.Claim)
	}
	if m.join != nil {
		return stepDone, errJoin
	}
	return stepWait, nil
}

// trustsGrant tells whether a hand-over is worth trust without another round trip, and from which
// local moment its claim counts. That is the earliest at which the server's clock can have shown
// the time of the grant. Our last answered request was sent before the server's clock showed
// a.serverTime, so it showed g.At no earlier than that much after the sending.
func (a *attempt) trustsGrant(g *protocol.Grant) (from time.Time, ok bool) {
	o := &a.lock.options
	now := time.Now()
	since := time.Duration(g.At-a.serverTime) * time.Microsecond
	from = a.answeredAsk.Add(since - since/100) // less the drift of two clocks meanwhile
	end := from.Add(g.Claim - margin(g.Claim))
	stepped := g.At < a.serverTime || from.After(now) // its clock was set between answer and grant
	forged := g.Claim > a.lock.spec.Claim             // no server gives more than was asked for
	young := end.Sub(now) >= g.Claim/2 && !past(end, now)
	byMessage := !o.Fixed && o.MinHold == 0 && !a.engine.features.Confirm
	return from, !stepped && !forged && young && byMessage
}

// try asks once, and again only while the trust in what was granted is over before it arrives.
func (a *attempt) try(ctx context.Context, send func(context.Context, protocol.Ask) (protocol.Answer, error)) (*hold, error) {
	e := a.engine
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
		if next, err := a.won(answer.Token, answer.Block, answer.Server, sent, a.lock.options.TTL); next == stepDone {
			return a.hold, err
		}
	}
}

// lease makes the first lease of a hold that was won without a pool, or abandons the attempt.
func (a *attempt) lease(ctx context.Context, h *hold, err error) (*Lease, error) {
	a.engine.mu.Lock()
	defer a.engine.mu.Unlock()
	if err != nil {
		a.abandon()
		return nil, err
	}
	return a.lock.firstLease(ctx, h, nil)
}

// abandon gives up an attempt that does not hold. A cleanup in the background frees the place or
// the hold that the server has of its ticket, or may still get, until that is certain. An attempt
// that holds stays as it is: its hold is released by other means. The engine's mutex is held.
func (a *attempt) abandon() {
	e := a.engine
	delete(e.mailboxes, a.ticket.ID)
	queued := a.state == attemptQueued
	if !a.to(attemptAbandoned) {
		return
	}
	until := time.Now().Add(max(a.lock.options.TTL, a.lock.options.MinHold, placeLife))
	if a.release != nil {
		e.cleanup(a.lock, protocol.Free{Ticket: *a.release}, until, time.Time{})
	}
	if queued || !a.mayApplyUntil.IsZero() {
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

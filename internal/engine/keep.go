package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ErrOwnTimes refuses a kept place to a lock whose holds have an end of their own, or that polls. A
// process that goes on with the ticket does not know when an earlier one was granted the hold.
var ErrOwnTimes = errors.New("a kept place is for leases that are renewed without an end")

// errNoPlaces says why a protocol without a queue keeps no places.
var errNoPlaces = errors.New("the servers have no common queue, so there is no place in one " +
	"that could be kept between two waits")

// placeError is why a protocol keeps no places; nil: it does.
func (e *Engine) placeError(name string) error {
	if e.features.Queue {
		return nil
	}
	return &protocol.Failure{Op: "ask", Name: name, Reason: protocol.Unsupported, Err: errNoPlaces}
}

// Place joins the queue with a ticket whose place is kept for so long after each ask, in one
// request. If the name is free, the ticket holds it for a TTL from now on. The errors are those of
// Try, but for a *BusyError, and ErrOwnTimes. After an error no place is left.
func (l *Lock) Place(ctx context.Context, keep time.Duration) (place Detached, err error) {
	e, o := l.engine, &l.options
	if o.Fixed || o.MinHold > 0 || o.MaxHold > 0 || o.Interval > 0 {
		return Detached{}, ErrOwnTimes
	}
	err = e.do(ctx, cmp.Or(l.unsupported(), e.placeError(l.name)), func() error {
		a := l.newAttempt(l.silentCall(ctx), 1)
		a.ticket.Keep, a.ticket.Wanted = keep, false
		if _, _, err := a.ask(ctx, true); err != nil {
			e.abandon([]*attempt{a})
			return err
		}
		place = Detached{Prefix: e.config.Prefix, Spec: l.Spec(), Options: Options{TTL: o.TTL}, Ticket: a.ticket}
		return nil
	})
	return place, err
}

// AttachWait waits with the ticket of a kept place until it holds. It never joins the queue. The
// error is a *WaitFailure or the Closed error, and the place is kept; an *AttachError, if the
// server has neither a place nor a hold of the ticket; a *protocol.Foreign, or a *protocol.Failure
// that waiting does not cure. See the package document.
func (e *Engine) AttachWait(ctx context.Context, d Detached) (*Lease, error) {
	if err := e.admitCall(e.placeError(d.Spec.Name)); err != nil {
		return nil, err
	}
	defer e.busy.Done()
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	options := d.Options
	options.Strict = true // no goroutine of this process gets the hold without a request
	l := e.NewLock(d.Spec, options).Weigh(d.Ticket.Weight)
	c := l.newCall(ctx)
	c.slow.beginWait()
	k := keptAttempt{l.newAttempt(c, 1)}
	k.ticket = d.Ticket
	k.ownSubscription = &subscription{engine: e, ticket: d.Ticket.ID}
	k.to(attemptKnown) // an ask that says so never joins
	return c.end(k.beginLease(ctx))
}

// DropPlace gives a kept place back, and the hold that it may have come to, in one request. An
// *AttachError: the server had neither. A *protocol.Failure or a *protocol.Foreign: the place may
// be there. A *WaitFailure: ctx was over. The Closed error.
func (e *Engine) DropPlace(ctx context.Context, d Detached) error {
	return e.do(ctx, e.placeError(d.Spec.Name), func() error {
		if err := e.protocol.Ready(ctx, d.Spec.Name); err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, timeout(d.Options.TTL))
		defer cancel()
		was, err := e.NewLock(d.Spec, d.Options).resource().Free(bounded, protocol.FreeRequest{Ticket: d.Ticket})
		e.Nudge(d.Ticket.ID, 0) // a goroutine of this process may wait there
		return dropError(d.Spec.Name, was, err)
	})
}

// A keptAttempt is an attempt whose ticket has a kept place. It is the requester of its waitLoop.
// The end of its wait leaves the place where it is, so it is not abandoned.
type keptAttempt struct{ *attempt }

// beginLease waits for the first lease of the hold, or for the end of the wait.
func (k keptAttempt) beginLease(ctx context.Context) (*Lease, error) {
	h, err := k.run(ctx)
	k.ownSubscription.close()
	e := k.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waits[k.ticket.ID] == &k.waitLoop {
		delete(e.waits, k.ticket.ID)
	}
	if err != nil {
		return nil, err
	}
	return k.lock.beginHold(k.call, h, nil)
}

// run asks until the attempt holds, or the wait ends. Then the last request says that nobody waits
// any more. That request finds a hold that came meanwhile: the attempt holds although its wait
// ended.
func (k keptAttempt) run(ctx context.Context) (*hold, error) {
	e := k.engine
	err := k.wait(ctx, k, k.ticket.ID)
	evicted := errors.As(err, new(*protocol.Evicted))
	if !evicted && (endedWait(err) || err != nil && errors.Is(err, e.config.Closed)) {
		if left := k.sendLast(); left != nil {
			err = left
		}
	}
	switch {
	case k.state == attemptHeld:
		return k.hold, nil
	case err != nil:
		return nil, err
	}
	return k.hold, nil
}

// sendLast sends the last request of a wait, when no earlier one can take effect any more. If no
// answer comes, that request may win, or the server may make one more offer. The next wait finds
// that hold. The error is an *AttachError. Nil: the place is kept, the attempt holds, or no answer
// came.
func (k keptAttempt) sendLast() error {
	k.engine.pause(context.Background(), time.Until(k.mayApplyUntil))
	k.leaving = true
	answer, sent, err := k.ask(context.Background(), true)
	switch {
	case err != nil:
		return k.refusalError(err)
	case answer.Status == protocol.Busy:
		return k.goneError()
	case answer.Status != protocol.Held:
		return nil
	}
	next, err := k.becomeHolder(answer, sent, k.lock.options.TTL)
	if next == stepDone && err == nil {
		return nil
	}
	k.engine.abandon([]*attempt{k.attempt}) // it gives the hold back; the place went with the grant
	if err != nil {                         // the engine is closed, which the caller is told
		return nil
	}
	return k.goneError() // the answer came too late to be of use
}

func (k keptAttempt) goneError() error { return &AttachError{Name: k.call.name, Why: Gone} }

// refusalError is the error of a wait whose answer says that an operator evicted the ticket, or
// broke its hold before this process took it up. The remainder of the hold is given back. The
// server remembers the eviction, for the next process that waits with the ticket. Nil: the answer
// says neither.
func (k keptAttempt) refusalError(err error) error {
	var evicted *protocol.Evicted
	var broken *protocol.Broken
	switch {
	case errors.As(err, &evicted):
		return k.endErrorBy(err)
	case errors.As(err, &broken):
		k.engine.abandon([]*attempt{k.attempt})
		return &AttachError{Name: k.call.name, Why: Broken, By: broken.By}
	}
	return nil
}

// request implements requester. The end of ctx does not cut a request off: what it does must be
// known before the wait ends.
func (k keptAttempt) request(ctx context.Context) (step, time.Time, error) {
	answer, sent, err := k.ask(context.WithoutCancel(ctx), true)
	switch {
	case err != nil && k.mayPass(err):
		return stepWait, k.retry(ctx, sent, err, "holdfast: asking again"), nil
	case err != nil:
		if refused := k.refusalError(err); refused != nil {
			err = refused
		}
		return stepDone, time.Time{}, err
	case answer.Status == protocol.Held:
		next, err := k.becomeHolder(answer, sent, k.lock.options.TTL)
		return next, time.Time{}, err
	case answer.Status == protocol.Busy:
		return stepDone, time.Time{}, k.goneError()
	}
	var about protocol.Subject
	if !k.ownSubscription.recentlyDenied() {
		about = k.lock.resource()
	}
	// After an err it goes on without messages: askAfter makes it ask more often.
	subscribed, missed, _ := k.beginWaiting(ctx, about, answer, sent)
	if missed {
		return stepAsk, time.Time{}, nil
	}
	k.call.observeWait(Waiting)
	return stepWait, sent.Add(min(k.askAfter(answer, subscribed), k.ticket.Keep/3)), nil
}

// handle implements requester. A grant is an offer, which the next ask takes up.
func (k keptAttempt) handle(m messages) (step, error) {
	if m.grant != nil {
		return stepAsk, nil
	}
	return stepWait, nil
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Extend prolongs a hold that is not renewed: it lasts for another TTL from now, but not past its
// max hold. It sends one request, and waits for the one about the hold that is under way, if any.
// Nil: the hold is prolonged for all entries. ErrRenewed: the watchdog prolongs it. ErrNotHeld, the
// cause of a loss, the Closed error or a *WaitFailure: nothing was sent; it may be a loss, too,
// that the answer told of. A *protocol.Failure: no answer came, trust is as it was, and nothing is
// sent again.
func (l *Lease) Extend(ctx context.Context) error {
	errs, err := l.engine().extend(ctx, []*Lease{l})
	if err != nil {
		return err
	}
	return errs[0]
}

// Extend is Lease.Extend for all parts, in one request where the protocol can. Parts that entered a
// hold that is renewed are left to the watchdog. The errors of the parts that were not prolonged,
// each a *PartError, are joined; the other parts are prolonged.
func (g *GroupLease) Extend(ctx context.Context) error {
	errs, err := g.engine().extend(ctx, g.parts)
	if err != nil {
		return err
	}
	return g.joinErrors(errs)
}

// An extension is one call of Extend. The engine's mutex guards its last two fields.
type extension struct {
	engine    *Engine
	leases    []*Lease
	fixed     []*Lease         // those of the leases whose holds are not renewed
	answers   map[*Lease]error // of those that are answered; nil: prolonged
	abandoned bool             // its caller has left
}

// extend prolongs the holds of leases. The errors are those of each lease. If err is not nil,
// nothing was sent.
func (e *Engine) extend(ctx context.Context, leases []*Lease) (errs []error, err error) {
	if err := e.admitCall(nil); err != nil {
		return nil, err
	}
	defer e.busy.Done()
	x := &extension{engine: e, leases: leases, answers: make(map[*Lease]error)}
	for _, l := range leases {
		if l.tenure.hold.lock.options.Fixed {
			x.fixed = append(x.fixed, l)
		}
	}
	if x.fixed == nil {
		return nil, ErrRenewed
	}
	renewals, until, err := x.begin(ctx)
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	x.send(ctx, renewals, sent, until)
	errs = x.leaseErrors()
	for i := range errs {
		errs[i] = e.orEnded(ctx, sent, errs[i])
	}
	return errs, nil
}

// begin waits until no request about any of the holds is under way, and takes the place of a
// renewal of each: a release and a downgrade wait for it, and so does the next Extend. It takes all
// of the places or none, so that two groups that share holds do not wait for each other. The error
// is the end of a lease, or of ctx. Else it returns what to send, and when trust in a hold ends.
func (x *extension) begin(ctx context.Context) (renewals []protocol.Renewal, until time.Time, err error) {
	e, since := x.engine, time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if err := x.endErrorLocked(); err != nil {
			return nil, until, err
		}
		if ctx.Err() != nil {
			return nil, until, &WaitFailure{Err: protocol.EndOf(ctx), Waited: time.Since(since), Answered: true}
		}
		under := x.underWay()
		if under == nil {
			break
		}
		e.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
		}
		e.mu.Lock()
	}
	for _, l := range x.fixed {
		h := l.tenure.hold
		h.renewing = make(chan struct{})
		renewals = append(renewals, h.renewalRequest())
		until = earlier(until, h.end())
	}
	return renewals, until, nil
}

// endErrorLocked is why the leases are over: the first loss, or else that they were released. The
// engine's mutex is held, as in underWay.
func (x *extension) endErrorLocked() (err error) {
	for _, l := range x.leases {
		if end := l.endErrorLocked(); end != nil && (err == nil || errors.Is(err, ErrNotHeld)) {
			err = end
		}
	}
	return err
}

// underWay is the channel of a renewal, a downgrade or an Extend that is under way; nil: none is.
func (x *extension) underWay() chan struct{} {
	for _, l := range x.fixed {
		if renewing := l.tenure.hold.renewing; renewing != nil {
			return renewing
		}
	}
	return nil
}

// send sends the request and takes its answers. Its time is that of a renewal, and ends with trust.
// When ctx ends, its caller leaves. The request keeps its places until it is answered, or its time
// is over, as no downgrade may be sent beside it.
func (x *extension) send(ctx context.Context, renewals []protocol.Renewal, sent, until time.Time) {
	e := x.engine
	for _, renewal := range renewals {
		until = earlier(until, sent.Add(timeout(renewal.TTL)))
	}
	done := make(chan struct{})
	e.busy.Go(func() {
		defer close(done)
		e.protocol.Renew(deadline{context.Background(), until}, renewals,
			func(i int, r protocol.RenewalAnswer) { x.takeAnswer(x.fixed[i], r, sent) })
	})
	select {
	case <-done:
	case <-ctx.Done():
		x.abandon(ctx)
	}
}

// abandon leaves trust as it is where no answer came so far.
func (x *extension) abandon(ctx context.Context) {
	x.engine.mu.Lock()
	defer x.engine.mu.Unlock()
	x.abandoned = true
	for _, l := range x.fixed {
		if _, answered := x.answers[l]; !answered {
			x.answers[l] = &protocol.Failure{Op: "renew", Name: l.Name(), Reason: protocol.NoAnswer, Unknown: true,
				Err: protocol.EndOf(ctx)}
		}
	}
}

// takeAnswer takes the answer to a request that was sent at a moment. Without an answer nothing
// changes, and neither does it by a good one after the caller was told that there is none.
func (x *extension) takeAnswer(l *Lease, r protocol.RenewalAnswer, sent time.Time) {
	e, h := x.engine, l.tenure.hold
	e.mu.Lock()
	defer e.mu.Unlock()
	h.endRenewal()
	if !h.isLive() || e.loseDenied(h, r) || x.abandoned {
		return
	}
	x.answers[l] = r.Err
	now := time.Now()
	event := h.event(Renewed)
	event.Left = h.end().Sub(now)
	switch {
	case r.Err != nil:
		h.change().failure = r.Err
	case isPast(h.end(), now): // too late: nothing brings it back
		e.lose(h, h.lossReason())
	default:
		before := h.trustEnd
		h.prolongTrust(sent, h.lock.options.TTL)
		if before.After(h.trustEnd) { // no answer takes trust away
			h.trustEnd = before
		}
		e.holds.update(h)
		e.queueEvent(event, h)
	}
}

// leaseErrors is the error of each lease once all is answered: its end comes before a failure.
func (x *extension) leaseErrors() []error {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := make([]error, len(x.leases))
	for i, l := range x.leases {
		if errs[i] = l.endErrorLocked(); errs[i] == nil {
			errs[i] = x.answers[l]
		}
	}
	return errs
}

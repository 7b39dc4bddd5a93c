package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An AttachError says that a hold cannot be attached: it is gone, or was broken.
type AttachError struct {
	Name string
	Why  Why    // Gone or Broken
	By   string // the label of the operator that broke it
}

func (a *AttachError) Error() string { return fmt.Sprintf("%q cannot be attached", a.Name) }

// Attach takes up a hold that was detached, in one request, and one for the server's time where the
// hold has an end of its own. Several holds make a group's lease. An *AttachError, a
// *protocol.Foreign: nothing is attached. A *protocol.Failure: no answer came; another try may
// succeed. protocol.ErrOrigin: the servers are others. A *WaitFailure: ctx was over. The Closed
// error. Of several, the error is a *PartError, and the other holds may have been prolonged once.
func (e *Engine) Attach(ctx context.Context, d Detached) (*Lease, error) {
	leases, err := e.attach(ctx, []Detached{d})
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// AttachGroup is Attach for the parts of a group, in their order.
func (e *Engine) AttachGroup(ctx context.Context, all []Detached) (*GroupLease, error) {
	leases, err := e.attach(ctx, all)
	if err != nil {
		return nil, err
	}
	return &GroupLease{parts: leases}, nil
}

func (e *Engine) attach(ctx context.Context, all []Detached) (leases []*Lease, err error) {
	err = e.do(ctx, nil, func() error {
		limit := limitOf(all)
		a, err := e.adoptAll(ctx, limit, all)
		if err != nil {
			return err
		}
		if err := a.renew(ctx, limit, (*hold).attachRequest, (*hold).takeAttached); err != nil {
			return err
		}
		leases, err = a.begin(ctx)
		for _, lease := range leases {
			lease.tenure.hold.lock.observeGrant(ctx, a.began, lease)
		}
		return err
	})
	return leases, err
}

// adoptAll makes the holds of a ticket. If the error is that of a hold, there is an attachment all
// the same.
func (e *Engine) adoptAll(ctx context.Context, limit time.Duration, all []Detached) (*attachment, error) {
	a := &attachment{engine: e, began: time.Now(), holds: make([]*hold, len(all)), errs: make([]error, len(all))}
	if err := e.protocol.Ready(ctx, all[0].Spec.Name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a.adopt(ctx, all)
	return a, a.firstError()
}

// limitOf is how long one request about all holds of a ticket may last.
func limitOf(all []Detached) time.Duration {
	ttl := all[0].Options.TTL
	for _, d := range all {
		ttl = min(ttl, d.Options.TTL)
	}
	return timeout(ttl)
}

// CheckDetached reports whether holds that were detached are there, in one request that prolongs
// none of them. Nil: all are. The errors are those of Attach.
func (e *Engine) CheckDetached(ctx context.Context, all []Detached) error {
	return e.do(ctx, nil, func() error {
		limit := limitOf(all)
		a, err := e.adoptAll(ctx, limit, all)
		if err != nil {
			return err
		}
		return a.renew(ctx, limit, (*hold).queryRequest,
			func(h *hold, r protocol.RenewalAnswer, _ time.Time) error { return h.missingError(r) })
	})
}

// DropDetached gives back holds that were detached, or what remains of those that were broken, in
// one request each. Its caller says that no code works under the ticket any more. Nil: all are
// given back. The errors are those of Attach, but not for what was broken.
func (e *Engine) DropDetached(ctx context.Context, all []Detached) error {
	return e.do(ctx, nil, func() error {
		ctx, cancel := context.WithTimeout(ctx, limitOf(all))
		defer cancel()
		a, err := e.adoptAll(ctx, limitOf(all), all)
		if a == nil {
			return err
		}
		var done sync.WaitGroup
		for i, h := range a.holds {
			if a.errs[i] == nil { // the others are given back all the same
				done.Go(func() { a.errs[i] = h.drop(ctx) })
			}
		}
		done.Wait()
		for _, h := range a.holds {
			e.Broken(h.ticket.ID) // it may be attached here
		}
		return a.firstError()
	})
}

// drop frees a hold that was adopted, or what remains of it.
func (h *hold) drop(ctx context.Context) error {
	was, err := h.lock.resource().Free(ctx, h.freeRequest())
	var had *AttachError
	if err = dropError(h.lock.name, was, err); errors.As(err, &had) && had.Why == Broken {
		return nil
	}
	return err
}

// dropError judges the answer to the free of a ticket that was not attached.
func dropError(name string, was bool, err error) error {
	var broken *protocol.Broken
	switch {
	case errors.As(err, &broken):
		return &AttachError{Name: name, Why: Broken, By: broken.By}
	case err == nil && !was:
		return &AttachError{Name: name, Why: Gone}
	}
	return err
}

// An attachment is one call of Attach, CheckDetached or DropDetached.
type attachment struct {
	engine *Engine
	began  time.Time
	holds  []*hold
	errs   []error // of the holds
}

// firstError is the error of the first hold that cannot be attached, or else of the first that had
// no answer.
func (a *attachment) firstError() (err error) {
	for i := range a.errs {
		var failure *protocol.Failure
		if a.errs[i] == nil || err != nil && errors.As(a.errs[i], &failure) {
			continue
		}
		if err = a.errs[i]; len(a.errs) > 1 {
			err = &PartError{a.holds[i].lock.name, err}
		}
		if !errors.As(err, &failure) {
			break
		}
	}
	return err
}

// adopt makes the holds, before any request that may prolong them.
func (a *attachment) adopt(ctx context.Context, all []Detached) {
	var done sync.WaitGroup
	for i, d := range all {
		options := d.Options
		options.Strict = true // no goroutine of this process gets the hold without a request
		l := a.engine.NewLock(d.Spec, options)
		h := &hold{grant: grant{lock: l}, rareState: &nothingRare}
		a.holds[i] = h
		done.Go(func() { a.errs[i] = h.adopt(ctx, &d) })
	}
	done.Wait()
}

// adopt fills a hold with what is known of it before it is renewed.
func (h *hold) adopt(ctx context.Context, d *Detached) error {
	o := &h.lock.options
	timed := o.MinHold > 0 || o.MaxHold > 0 || o.Fixed
	adopted, err := h.lock.resource().Adopt(ctx, d.Ticket, d.Origin, timed)
	if err != nil {
		return err
	}
	h.ticket, h.grantedAt = adopted.Ticket, adopted.Granted
	h.grantToken, h.lastToken, h.token = d.GrantToken, d.Token, d.Token
	h.ticketNamed = true // another process may have the ticket too
	clock := clockSample{adopted.Sent, adopted.Server}
	if after := clock.server - h.grantedAt; after > 0 {
		h.change().attachedAfter = time.Duration(after) * time.Microsecond
	}
	if o.MaxHold > 0 {
		h.change().maxHoldEnd = clock.earliest(h.grantedAt + o.MaxHold.Microseconds()).Add(-margin(o.MaxHold))
	}
	if o.Fixed {
		h.change().lasts = d.Lasts
		h.trustEnd = clock.earliest(h.grantedAt + h.lasts.Microseconds()).Add(-margin(o.TTL))
	}
	if end := h.end(); !end.IsZero() && isPast(end, time.Now()) {
		return &AttachError{Name: h.lock.name, Why: Gone}
	}
	return nil
}

// attachRequest is a renewal that prolongs no hold past the end that it had by itself.
func (h *hold) attachRequest() protocol.Renewal {
	o := &h.lock.options
	r := h.renewalRequest()
	if o.Fixed {
		end := h.grantedAt + max(h.lasts, o.MinHold).Microseconds()
		if r.Ceiling == 0 || end < r.Ceiling {
			r.Ceiling, r.Trusted = end, h.end()
		}
	}
	return r
}

// renew sends one renewal of all holds, and takes the answers.
func (a *attachment) renew(ctx context.Context, limit time.Duration, request func(*hold) protocol.Renewal,
	take func(*hold, protocol.RenewalAnswer, time.Time) error,
) error {
	e := a.engine
	renewals := make([]protocol.Renewal, len(a.holds))
	for i, h := range a.holds {
		renewals[i] = request(h)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := time.Now()
	answers := make([]protocol.RenewalAnswer, len(renewals))
	e.protocol.Renew(ctx, renewals, func(i int, r protocol.RenewalAnswer) { answers[i] = r })
	for i, r := range answers {
		a.errs[i] = take(a.holds[i], r, sent)
	}
	return a.firstError()
}

// missingError says why an answer tells of no hold; nil: it is there.
func (h *hold) missingError(r protocol.RenewalAnswer) error {
	name := h.lock.name
	var broken *protocol.Broken
	switch {
	case errors.As(r.Err, &broken):
		return &AttachError{Name: name, Why: Broken, By: broken.By}
	case r.Err != nil:
		return r.Err
	case !r.Held:
		return &AttachError{Name: name, Why: Gone}
	}
	return nil
}

// takeAttached takes the answer to the renewal that makes the hold this process's.
func (h *hold) takeAttached(r protocol.RenewalAnswer, sent time.Time) error {
	if err := h.missingError(r); err != nil {
		return err
	}
	fixedEnd := h.trustEnd
	h.prolongTrust(sent, h.lock.options.TTL)
	h.trustEnd = earlier(h.trustEnd, fixedEnd)
	h.heldSince = time.Now()
	if isPast(h.end(), h.heldSince) {
		return &protocol.Failure{Op: "attach", Name: h.lock.name, Reason: protocol.NoAnswer, Unknown: true,
			Err: errLate}
	}
	return nil
}

// begin gives the holds to the watchdog and makes their leases.
func (a *attachment) begin(ctx context.Context) ([]*Lease, error) {
	e := a.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, e.config.Closed
	}
	leases := make([]*Lease, len(a.holds))
	for i, h := range a.holds {
		e.holds.add(h)
		leases[i] = h.beginTenure(ctx)
	}
	return leases, nil
}

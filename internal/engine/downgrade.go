package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Downgrade makes an entry that excludes others one that shares. With the last of a hold the hold
// shares at the server, and others who read enter. Nil: it is done. ErrNotWriter: the entry does
// not exclude others, or can do nothing else. ErrNotHeld, or the cause of a loss. A
// *protocol.Failure: refused; the entry is as it was. An *UncertainError: no answer came before ctx
// ended; the caller must take the entry for one that shares, and the engine goes on asking until
// trust ends.
func (l *Lease) Downgrade(ctx context.Context) error {
	e, t := l.engine(), l.tenure
	if err := e.admitCall(nil); err != nil {
		return err
	}
	defer e.busy.Done()
	if err := l.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	if t.hold.lock.spec.Kind != protocol.ReadWrite || l.shared {
		e.mu.Unlock()
		return ErrNotWriter
	}
	l.shared = true
	last := t.removeWriter()
	e.mu.Unlock()
	if !last {
		return nil
	}
	return e.downgrade(ctx, l)
}

// downgradeForReaders downgrades the hold of a lease that was released, the last that excluded
// others, for the readers that are still in.
func (e *Engine) downgradeForReaders(l *Lease) error {
	if err := e.admitCall(nil); err != nil {
		return nil // closed: all of it is given back
	}
	defer e.busy.Done()
	ctx, cancel := context.WithTimeout(context.Background(), e.config.ReleaseTimeout)
	defer cancel()
	if err := e.downgrade(ctx, l); !errors.Is(err, ErrNotHeld) { // the readers have left meanwhile
		return err
	}
	return nil
}

// downgrade downgrades the hold of a lease, in which no entry excludes others any more.
func (e *Engine) downgrade(ctx context.Context, l *Lease) error {
	h := l.tenure.hold
	lock := h.lock
	if lock.plain != nil {
		lock = lock.plain
	}
	spec := lock.Spec()
	spec.Shared = true
	d := &downgrade{engine: e, lease: l, hold: h, sharedLock: e.NewLock(spec, lock.options),
		done: make(chan error, 1)}
	e.busy.Add(1)
	go d.run()
	select {
	case err := <-d.done:
		return err
	case <-ctx.Done():
	}
	e.mu.Lock()
	d.detached = true
	e.mu.Unlock()
	select {
	case err := <-d.done:
		return err
	default:
		return &UncertainError{Err: protocol.EndOf(ctx)}
	}
}

// A downgrade is one under way. It goes on without its caller.
type downgrade struct {
	engine     *Engine
	lease      *Lease
	hold       *hold
	sharedLock *Lock
	done       chan error // of one

	// Guarded by the engine's mutex.
	mayHaveApplied bool // a request without an answer may have done it
	detached       bool // its caller has left
}

// run asks until there is an answer, or until the hold is over.
func (d *downgrade) run() {
	defer d.engine.busy.Done()
	if !d.begin() {
		return
	}
	for failures := 1; !d.ask(); failures++ {
		d.engine.pause(context.Background(), backoff(failures))
	}
}

// begin waits for the renewal under way, and for an ask that may still arrive: it would not find
// its hold, and join the queue. No renewal is sent beside a downgrade. False: the hold is over.
func (d *downgrade) begin() bool {
	e, h := d.engine, d.hold
	e.mu.Lock()
	defer e.mu.Unlock()
	for h.isLive() {
		renewing, wait := h.renewing, time.Until(h.mayApplyUntil)
		if renewing == nil && wait <= 0 {
			break
		}
		e.mu.Unlock()
		if renewing != nil {
			<-renewing // as long as one request, at most
		} else {
			e.pause(context.Background(), wait)
		}
		e.mu.Lock()
	}
	if !h.to(holdDowngrading) {
		d.done <- h.endCause()
		return false
	}
	h.change().downgraded = d.sharedLock
	h.renewing, h.renewAt = make(chan struct{}), time.Time{}
	e.holds.update(h)
	return true
}

// ask asks once. It reports whether the downgrade has ended.
func (d *downgrade) ask() (ended bool) {
	e, h := d.engine, d.hold
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.isLive() {
		d.end(h.endCause())
		return true
	}
	now := time.Now()
	ttl := h.remainingTTL(now)
	until := earlier(now.Add(h.lock.timeout), h.end())
	e.mu.Unlock()
	answer, err := d.sharedLock.resource().Downgrade(deadline{context.Background(), until},
		protocol.Ask{Ticket: h.ticket, TTL: ttl, Deadline: until})
	e.mu.Lock()
	var failure *protocol.Failure
	if errors.As(err, &failure) {
		if failure.Unknown {
			h.change().mayApplyUntil, d.mayHaveApplied = until, true
		}
		err = failure.OrUnknown(d.mayHaveApplied)
		h.change().failure = err
	}
	return d.takeAnswer(answer, err, now, ttl)
}

// takeAnswer takes an answer, and reports whether the downgrade has ended. The engine's mutex is
// held.
func (d *downgrade) takeAnswer(answer protocol.Answer, err error, sent time.Time, ttl time.Duration) (ended bool) {
	e, h := d.engine, d.hold
	var failure *protocol.Failure
	var broken *protocol.Broken
	failed := errors.As(err, &failure)
	switch {
	case !h.isLive():
		d.end(h.endCause())
	case failed && (d.mayHaveApplied || failure.Reason.Passing()): // refused after an unknown outcome: still unknown
		e.warn("holdfast: downgrading again", "name", h.lock.name, "error", err)
		return false
	case failed:
		d.restore(err)
	case errors.As(err, &broken):
		h.change().brokenBy = broken.By
		d.lose(Broken)
	case err != nil:
		h.change().failure = err
		d.lose(Foreign)
	case answer.Status != protocol.Held:
		d.lose(Gone)
	case isPast(h.end(), time.Now()):
		d.lose(h.lossReason())
	default:
		d.share(sent, ttl)
	}
	return true
}

// share makes the hold one that shares. The engine's mutex is held, as in the methods below.
func (d *downgrade) share(sent time.Time, ttl time.Duration) {
	e, h := d.engine, d.hold
	h.to(holdSharing)
	rare := h.change()
	rare.sharing, rare.downgraded = d.sharedLock, nil
	if !h.lock.options.Fixed {
		h.prolongTrust(sent, ttl)
	}
	e.holds.update(h)
	if h.pool != nil { // writers of this process ask behind it
		e.promoteNext(h)
	}
	if d.sharedLock.joinable {
		e.openToReaders(h, d.sharedLock.key())
	}
	d.end(nil)
}

// restore leaves the hold as it was.
func (d *downgrade) restore(err error) {
	e, h := d.engine, d.hold
	h.to(holdHeld)
	h.change().downgraded = nil
	h.endRenewal()
	if !h.lock.options.Fixed {
		h.renewAt = time.Now()
	}
	e.holds.update(h)
	if d.detached {
		e.warn("holdfast: cannot downgrade; others can read after the release", "name", h.lock.name, "error", err)
	} else if !d.lease.released {
		d.lease.shared = false
		d.lease.tenure.writers++
	}
	d.done <- err // at once: a caller that leaves now must learn that its entry is as it was
}

func (d *downgrade) lose(why Why) {
	d.engine.lose(d.hold, why)
	d.end(d.hold.lossCause)
}

// end tells the caller, after what was queued before.
func (d *downgrade) end(err error) {
	d.hold.endRenewal()
	d.engine.mu.after(func() { d.done <- err })
}

// remainingTTL is how long the hold is to last from now on: the TTL, but not beyond a fixed end or
// the max hold, and not less than the min hold. The engine's mutex is held.
func (h *hold) remainingTTL(now time.Time) time.Duration {
	o := &h.lock.options
	ttl := o.TTL
	if o.Fixed {
		ttl = h.trustEnd.Add(margin(o.TTL)).Sub(now)
	}
	if o.MinHold > 0 {
		ttl = max(ttl, h.heldSince.Add(o.MinHold-h.attachedAfter).Sub(now))
	}
	if !h.maxHoldEnd.IsZero() {
		ttl = min(ttl, h.maxHoldEnd.Add(margin(o.MaxHold)).Sub(now))
	}
	return max(ttl.Truncate(time.Millisecond), time.Millisecond)
}

// settledMode is what the hold is at the server, once that is known.
func (e *Engine) settledMode(ctx context.Context, h *hold) (*Lock, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h.downgraded != nil && h.renewing != nil {
		renewing := h.renewing
		e.mu.Unlock()
		var err error
		select {
		case <-renewing:
		case <-ctx.Done():
			err = &protocol.Failure{Op: "check", Name: h.lock.name, Reason: protocol.NoAnswer,
				Err: protocol.EndOf(ctx)}
		}
		e.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	return h.mode(), nil
}

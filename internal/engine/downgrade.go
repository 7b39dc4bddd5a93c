package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Downgrade makes an entry that excludes one that shares. With the last of a hold the hold shares at the server, and others
// who read enter. Nil: it is done. ErrNotWriter: it does not exclude, or can do nothing else. ErrNotHeld, or the cause of a
// loss. A *protocol.Failure: refused; the entry is as it was. An *Uncertain: no answer came before ctx ended; the
// entry is to be taken for one that shares, and the engine goes on asking until trust ends.
func (l *Lease) Downgrade(ctx context.Context) error {
	e, t := l.engine(), l.tenure
	if err := e.begin(); err != nil {
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

// removeWriter takes an entry that excludes others out of the count. It tells whether it was the last where others can share.
func (t *localTenure) removeWriter() bool {
	t.writers--
	return t.writers == 0 && t.hold.lock.spec.Kind == protocol.ReadWrite
}

// downgradeForReaders downgrades the hold of a lease that was released, the last that excluded, for those who read on.
func (e *Engine) downgradeForReaders(l *Lease) error {
	if err := e.begin(); err != nil {
		return nil // closed: all of it is given back
	}
	defer e.busy.Done()
	ctx, cancel := context.WithTimeout(context.Background(), e.config.ReleaseTimeout)
	defer cancel()
	if err := e.downgrade(ctx, l); !errors.Is(err, ErrNotHeld) { // those who read have left meanwhile
		return err
	}
	return nil
}

// downgrade downgrades the hold of a lease, in which nobody excludes others any more.
func (e *Engine) downgrade(ctx context.Context, l *Lease) error {
	h := l.tenure.hold
	spec := h.lock.spec
	spec.Shared = true
	d := &downgrade{engine: e, lease: l, hold: h, sharedLock: e.Lock(spec, h.lock.options), done: make(chan error, 1)}
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
		return &Uncertain{Err: protocol.EndOf(ctx)}
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

// run asks until there is an answer, or until the hold is over. No renewal is under way beside it.
func (d *downgrade) run() {
	e, h := d.engine, d.hold
	defer e.busy.Done()
	e.mu.Lock()
	for renewing, wait := h.renewing, time.Until(h.mayApplyUntil); !h.over && (renewing != nil || wait > 0); {
		e.mu.Unlock()
		if renewing != nil {
			<-renewing // as long as one request, at most
		} else {
			e.pause(context.Background(), wait) // an ask that arrived later would not find its hold, and stand in line
		}
		e.mu.Lock()
		renewing, wait = h.renewing, time.Until(h.mayApplyUntil)
	}
	if h.over {
		d.done <- h.endCause()
		e.mu.Unlock()
		return
	}
	under := make(chan struct{})
	h.sharedLock, h.downgrading, h.renewing, h.renewAt = d.sharedLock, true, under, time.Time{}
	e.watchdog.reschedule(h)
	for failures := 1; !h.over; failures++ {
		now := time.Now()
		ttl := h.remainingTTL(now)
		until := earlier(now.Add(timeout(h.lock.options.TTL)), h.end())
		e.mu.Unlock()
		answer, err := d.sharedLock.resource.Downgrade(deadline{context.Background(), until},
			protocol.Ask{Ticket: h.ticket, TTL: ttl, Deadline: until})
		if over, next := d.applyAnswer(answer, err, now, ttl, until); over {
			close(under)
			next()
			return
		}
		e.mu.Lock()
		if !h.over {
			e.mu.Unlock()
			e.pause(context.Background(), backoff(failures))
			e.mu.Lock()
		}
	}
	h.renewing = nil
	d.done <- h.endCause()
	e.mu.Unlock()
	close(under)
}

// endCause is why a hold is over: the cause of its loss, or that it was given back. It is called with the mutex held.
func (h *hold) endCause() error {
	if h.lossCause != nil {
		return h.lossCause
	}
	return ErrNotHeld
}

// applyAnswer takes an answer. Over: it was one; then next is to be done.
func (d *downgrade) applyAnswer(answer protocol.Answer, err error, sent time.Time, ttl time.Duration, until time.Time) (over bool, next func()) {
	e, h := d.engine, d.hold
	e.mu.Lock()
	defer e.mu.Unlock()
	var failure *protocol.Failure
	var replaced *protocol.Replaced
	if errors.As(err, &failure) {
		if failure.Unknown {
			h.mayApplyUntil, d.mayHaveApplied = until, true
		}
		err = failure.Or(d.mayHaveApplied)
		h.failure = err
	}
	switch {
	case h.over:
		return false, nil
	case failure != nil && (d.mayHaveApplied || failure.Reason.Passing()): // refused after an unknown one: still unknown
		e.config.Logger.Warn("holdfast: downgrading again", "name", h.lock.spec.Name, "error", err)
		return false, nil
	case errors.As(err, &replaced):
		h.replacedBy = replaced.By
		return true, d.lose(Replaced)
	case err != nil && failure == nil:
		h.failure = err
		return true, d.lose(Foreign)
	case err != nil: // refused: it is what it was
		h.sharedLock, h.downgrading, h.renewing = nil, false, nil
		if !h.lock.options.Fixed {
			h.renewAt = time.Now()
		}
		e.watchdog.reschedule(h)
		if d.detached {
			e.config.Logger.Warn("holdfast: cannot downgrade; others can read after the release", "name", h.lock.spec.Name, "error", err)
		} else if !d.lease.released {
			d.lease.shared = false
			d.lease.tenure.writers++
		}
		d.done <- err
		return true, func() {}
	case answer.Status != protocol.Held:
		return true, d.lose(Gone)
	}
	if past(h.end(), time.Now()) {
		return true, d.lose(h.lossReason())
	}
	h.renewing, h.downgrading = nil, false
	if !h.lock.options.Fixed {
		h.confirm(sent, ttl)
	}
	e.watchdog.reschedule(h)
	lead, join := func() {}, func() {}
	if h.pool != nil { // writers of this process ask behind it
		lead = e.promoteNext(h)
	}
	if d.sharedLock.joinable() {
		join = e.openToReaders(h, d.sharedLock.poolKey())
	}
	return true, func() { lead(); join(); d.done <- nil }
}

// lose loses the hold. It is called with the mutex held and returns what to do without it.
func (d *downgrade) lose(why Why) func() {
	d.hold.renewing = nil
	tell := d.engine.lose(d.hold, why)
	cause := d.hold.lossCause
	return func() { tell(); d.done <- cause }
}

// serverForm is what the hold is at the server, as far as is known. It is called with the mutex held, as are forms and rest.
func (h *hold) serverForm() *Lock {
	if h.sharedLock != nil {
		return h.sharedLock
	}
	return h.lock
}

// serverForms are all that the hold may be at the server, in the order in which it can become them.
func (h *hold) serverForms() []*Lock {
	if h.downgrading {
		return []*Lock{h.lock, h.sharedLock}
	}
	return []*Lock{h.serverForm()}
}

// remainingTTL is how long the hold is to last from now on: the TTL, but not beyond a fixed end or the max hold, and not less than
// the min hold.
func (h *hold) remainingTTL(now time.Time) time.Duration {
	o := &h.lock.options
	ttl := o.TTL
	if o.Fixed {
		ttl = h.trust.Add(margin(o.TTL)).Sub(now)
	}
	if o.MinHold > 0 {
		ttl = max(ttl, h.heldSince.Add(o.MinHold).Sub(now))
	}
	if !h.ceiling.IsZero() {
		ttl = min(ttl, h.ceiling.Add(margin(o.MaxHold)).Sub(now))
	}
	return max(ttl.Truncate(time.Millisecond), time.Millisecond)
}

// settledForm is what the hold is at the server, once that is known.
func (e *Engine) settledForm(ctx context.Context, h *hold) (*Lock, error) {
	for {
		e.mu.Lock()
		form, renewing := h.serverForm(), h.renewing
		if !h.downgrading || renewing == nil {
			e.mu.Unlock()
			return form, nil
		}
		e.mu.Unlock()
		select {
		case <-renewing:
		case <-ctx.Done():
			return nil, &protocol.Failure{Op: "check", Name: h.lock.spec.Name, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
		}
	}
}

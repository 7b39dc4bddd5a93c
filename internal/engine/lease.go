package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Lease is one entry into a hold. All methods are safe for concurrent use.
type Lease struct {
	tenure       *localTenure
	parent       context.Context
	previousPart *Lease // of a group: the part before this one

	// Guarded by the engine's mutex.
	shared   bool // it does not exclude others who share
	released bool
	ctx      context.Context
	cancel   context.CancelCauseFunc
}

type leaseKey struct{}

// leaseOf is the innermost lease whose context a context comes from.
func leaseOf(ctx context.Context) *Lease {
	lease, _ := ctx.Value(leaseKey{}).(*Lease)
	return lease
}

// outer is the lease under whose context this one was taken, with all that it was taken with.
func (l *Lease) outer() *Lease {
	if l.previousPart != nil {
		return l.previousPart
	}
	return leaseOf(l.parent)
}

func (l *Lease) engine() *Engine { return l.tenure.hold.lock.engine }

// Name is the name that is held.
func (l *Lease) Name() string { return l.tenure.hold.lock.spec.Name }

// Token is the fencing token of the tenure.
func (l *Lease) Token() int64 { return l.tenure.token }

// Tokens is the token by name.
func (l *Lease) Tokens() map[string]int64 { return map[string]int64{l.Name(): l.Token()} }

// Owner is the owner, or the id of the hold when the lock was made without one. Whoever has that id may let another process
// resume the hold: from now on it is not passed on, and one that was is not named to those who had it before. Else they
// would resume it from those who have it now.
func (l *Lease) Owner() string {
	if owner := l.tenure.hold.lock.spec.Owner; owner != "" {
		return owner
	}
	e, h := l.engine(), l.tenure.hold
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.tenure != l.tenure {
		return ""
	}
	h.ownerExposed = true
	return string(h.ticket.ID)
}

// Until is the moment at which trust ends if no renewal is confirmed before. After the end it is a moment in the past.
func (l *Lease) Until() time.Time {
	e := l.engine()
	e.mu.Lock()
	tell := l.expireIfPast()
	defer tell()
	defer e.mu.Unlock()
	end := l.tenure.hold.end()
	if now := time.Now(); l.released || l.tenure.lossCause != nil && end.After(now) {
		return now
	}
	return end
}

// Context carries the values of the context that the lock was taken with, and ends with the lease.
func (l *Lease) Context() context.Context {
	e := l.engine()
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.ctx == nil {
		values := context.WithValue(context.WithoutCancel(l.parent), leaseKey{}, l)
		l.ctx, l.cancel = context.WithCancelCause(values)
		if l.tenure.lossCause != nil {
			l.cancel(l.tenure.lossCause)
		} else if l.released {
			l.cancel(context.Canceled)
		}
	}
	return l.ctx
}

// Carry is a context with this lease in it that ends when ctx does: what is locked under it enters the hold.
func (l *Lease) Carry(ctx context.Context) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// Err is nil while the lease can be trusted, by the clocks themselves; then the cause of its loss, or ErrNotHeld once
// it was released.
func (l *Lease) Err() error {
	e := l.engine()
	e.mu.Lock()
	tell := l.expireIfPast()
	defer tell()
	defer e.mu.Unlock()
	if l.released {
		return ErrNotHeld
	}
	return l.tenure.lossCause
}

// expireIfPast finds a hold lost whose time is over, whoever should have noticed. It is called with the mutex held.
func (l *Lease) expireIfPast() (tell func()) {
	if h := l.tenure.hold; !l.released && !h.over && past(h.end(), time.Now()) {
		return l.engine().lose(h, h.lossReason())
	}
	return func() {}
}

// Check asks the server. Nil: the hold was there. The cause of its loss when it was not; a *protocol.Failure when
// there was no answer, and nothing is changed by that.
func (l *Lease) Check(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	h := l.tenure.hold
	ctx, cancel := context.WithTimeout(ctx, timeout(h.lock.options.TTL))
	defer cancel()
	err := l.engine().queryHold(ctx, h)
	if lost := l.Err(); lost != nil {
		return lost
	}
	return err
}

// queryHold asks the server whether a hold is there, and takes the answer down. The error is a *protocol.Failure: there was none.
func (e *Engine) queryHold(ctx context.Context, h *hold) error {
	var answer protocol.Renewed
	for {
		form, err := e.settledForm(ctx, h)
		if err != nil {
			return err
		}
		e.protocol.Renew(ctx, []protocol.Renewal{{Resource: form.resource, Ticket: h.ticket, Token: h.grantToken}},
			func(_ int, r protocol.Renewed) { answer = r })
		e.mu.Lock()
		same := form == h.serverForm() && !h.downgrading
		e.mu.Unlock()
		if same || answer.Held || answer.Err != nil {
			break
		}
	}
	e.applyRenewal(h, answer, time.Time{}, true)
	return answer.Err
}

// Release gives this entry back, and the hold with the last entry. Nil: it is given back. ErrNotHeld: it had been.
// The cause of a loss. An *Uncertain when the server did not answer in time: what is left is removed in
// the background, or by the server when its time is over.
func (l *Lease) Release() error {
	e, h := l.engine(), l.tenure.hold
	e.mu.Lock()
	if l.released {
		e.mu.Unlock()
		return ErrNotHeld
	}
	tell := l.expireIfPast()
	if l.tenure.lossCause != nil {
		// Whoever had it has stopped: if the server still keeps it, nobody need wait for its end.
		e.scheduleCleanup(h)
		err := l.tenure.lossCause
		e.mu.Unlock()
		tell()
		return err
	}
	l.released = true
	cancel := l.cancel
	l.tenure.entries--
	last := !l.shared && l.tenure.removeWriter()
	if l.tenure.entries > 0 {
		e.mu.Unlock()
		if cancel != nil {
			cancel(context.Canceled)
		}
		if last {
			return e.downgradeForReaders(l)
		}
		return nil
	}
	next := e.releaseHold(h)
	e.mu.Unlock()
	if cancel != nil {
		cancel(context.Canceled)
	}
	return next()
}

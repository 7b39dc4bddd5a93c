package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ErrShared refuses to detach a lease whose hold has other entries.
var ErrShared = errors.New("other leases are in the same hold")

// ErrDowngrading refuses to detach a lease whose downgrade has no answer yet.
var ErrDowngrading = errors.New("its downgrade is under way")

// A Detached is a hold that has left its process, with all that another process must know to go on
// with it.
type Detached struct {
	Prefix  string
	Spec    protocol.Spec // as the server has the hold; TTL, Fixed, Claim and Life follow from Options
	Options Options       // TTL, MinHold, MaxHold and Fixed
	Ticket  protocol.Ticket
	Origin  protocol.Origin

	Token      int64         // of the lease
	GrantToken int64         // the first of the grant, by which the server knows the hold
	Lasts      time.Duration // of a hold that is not renewed: its time from the grant on
}

// Detach ends the lease and lets its hold leave the process, without a request. The hold lasts as
// long as it was prolonged for, unless another process attaches it. Detach waits, at most as long
// as one request, until no earlier ask of the ticket can take effect any more: such an ask would
// win the hold again after its release. ErrShared, ErrDowngrading: the lease is as it was.
// ErrNotHeld, the cause of a loss, or the Closed error. There is one Detached.
func (l *Lease) Detach() ([]Detached, error) { return l.engine().detach([]*Lease{l}) }

// Detach is that of Lease for all parts or for none. The error is a *PartError.
func (g *GroupLease) Detach() ([]Detached, error) {
	if err := g.Err(); err != nil {
		return nil, err
	}
	return g.engine().detach(g.parts)
}

func (e *Engine) detach(leases []*Lease) ([]Detached, error) {
	if err := e.admitCall(nil); err != nil {
		return nil, err
	}
	defer e.busy.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		var late time.Time
		for _, l := range leases {
			if err := l.detachError(); err != nil {
				if len(leases) > 1 {
					err = &PartError{l.Name(), err}
				}
				return nil, err
			}
			if at := l.tenure.hold.mayApplyUntil; late.Before(at) {
				late = at
			}
		}
		wait := time.Until(late)
		if wait <= 0 {
			break
		}
		e.mu.Unlock()
		e.pause(context.Background(), wait)
		e.mu.Lock()
	}
	all := make([]Detached, len(leases))
	for i, l := range leases {
		all[i] = l.detach()
	}
	for _, l := range leases { // last: a slow observer delays its own caller alone
		if event, told := l.head().endReport(Released); told {
			event.Detached = true
			e.mu.after(func() { e.observe(event) })
		}
	}
	return all, nil
}

// detachError tells why a lease cannot be detached. The engine's mutex is held.
func (l *Lease) detachError() error {
	if l.released {
		return ErrNotHeld
	}
	l.expireIfPast()
	t, h := l.tenure, l.tenure.hold
	switch {
	case t.lossCause != nil:
		return t.lossCause
	case len(t.entries) > 1:
		return ErrShared
	case h.state == holdDowngrading || l.shared != h.mode().spec.Shared:
		return ErrDowngrading
	}
	return nil
}

// detach takes the hold of a lease out of the process. Goroutines that wait for it ask for
// themselves. The observer is not told. The engine's mutex is held.
func (l *Lease) detach() Detached {
	e, h, mode := l.engine(), l.tenure.hold, l.tenure.hold.mode()
	h.to(holdDetached)
	e.holds.remove(h)
	l.leaveTenure()
	if h.pool != nil {
		e.promoteNext(h)
	}
	o := h.lock.options
	return Detached{
		Prefix:  e.config.Prefix,
		Spec:    mode.Spec(),
		Options: Options{TTL: o.TTL, MinHold: o.MinHold, MaxHold: o.MaxHold, Fixed: o.Fixed},
		Ticket:  h.ticket,
		Origin:  mode.resource().Origin(h.ticket, h.grantedAt),
		Token:   l.tenure.token, GrantToken: h.grantToken,
		Lasts: h.lifetime(),
	}
}

// lifetime is how long the server keeps a hold that is not renewed, from the grant on, or less. A
// hold that was prolonged here lasts a TTL more from that request on. At heldSince the server's
// clock showed attachedAfter more than at the grant, and no less since then, less a hundredth for
// drift.
func (h *hold) lifetime() time.Duration {
	ttl := h.lock.options.TTL
	if !h.lock.options.Fixed {
		return 0
	}
	if since := h.trustEnd.Add(margin(ttl) - ttl).Sub(h.heldSince); since > 0 {
		return h.attachedAfter + since - since/100 + ttl
	}
	return max(h.lasts, ttl)
}

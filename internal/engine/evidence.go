package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// MaxUnder is how many holds the place of a waiter says that it waits under.
const MaxUnder = 8

// maxHoldsToFind is among how many holds of a name one of Options.Under is looked for.
const maxHoldsToFind = 100

// An evidence is the leases under which an attempt waits, and which its ticket names. The engine's
// mutex guards it. See the package document.
type evidence struct {
	leases []*Lease
	stale  bool                // one of them ended, and its hold did not
	others []protocol.Evidence // the holds of other clients
}

// waitsUnder returns the leases under which a caller waits: those of ctx and those that its group
// has already, of each hold one. Semaphores keep nobody out by themselves. The holds are not passed
// on from now on.
func (l *Lock) waitsUnder(ctx context.Context) (under []*Lease) {
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	add := func(lease *Lease) bool {
		if lease == nil || !lease.keepsOthersOut(e) ||
			slices.ContainsFunc(under, func(other *Lease) bool { return other.tenure.hold == lease.tenure.hold }) {
			return false
		}
		lease.tenure.hold.ticketNamed = true
		under = append(under, lease)
		return false
	}
	for _, lease := range l.beside {
		add(lease)
	}
	findLease(ctx, add)
	return under
}

// keepsOthersOut reports whether evidence may name a lease. The engine's mutex is held.
func (l *Lease) keepsOthersOut(e *Engine) bool {
	h := l.tenure.hold
	return h.lock.engine == e && h.lock.spec.Kind != protocol.Semaphore && !l.released && h.isLive() &&
		l.tenure.lossCause == nil && !isPast(h.end(), time.Now())
}

// findHolds returns the holds of Options.Under, as the servers know them. A name is left out if its
// hold has another token by now, or keeps nobody out.
func (l *Lock) findHolds(ctx context.Context) (found []protocol.Evidence) {
	if l.options.Under == nil {
		return nil
	}
	tokens := *l.options.Under
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		known, err := l.engine.protocol.Inspect(ctx, name, protocol.Page{Holds: maxHoldsToFind})
		if err != nil {
			l.engine.config.Logger.Warn("holdfast: looking for a hold to wait under", "name", name, "error", err)
			continue
		}
		for _, h := range known.Holds {
			if h.Token == tokens[name] && known.Kind != protocol.Semaphore {
				found = append(found, protocol.Evidence{Name: name, ID: h.ID})
			}
		}
	}
	return found
}

// setEvidence makes the ticket of an attempt name leases, and holds of other clients, before its
// first request. The engine's mutex is held.
func (a *attempt) setEvidence(under []*Lease, others []protocol.Evidence) {
	var holds []protocol.Evidence
	for _, lease := range under {
		holds = append(holds, protocol.Evidence{Name: lease.Name(), ID: lease.tenure.hold.ticket.ID})
	}
	holds = append(holds, others...)
	a.ticket.Under, a.ticket.More = holds[:min(len(holds), MaxUnder)], len(holds) > MaxUnder
	a.evidence = &evidence{leases: under, others: others}
}

// acquireUnder waits under leases and other holds with a ticket of its own, which names them. It
// looks for deadlocks meanwhile, if that is wanted.
func (l *Lock) acquireUnder(ctx context.Context, c *call, under []*Lease) (*Lease, error) {
	e, a := l.engine, l.newAttempt(c, 1)
	others := l.findHolds(ctx)
	e.mu.Lock()
	a.setEvidence(slices.DeleteFunc(under, func(lease *Lease) bool { return !lease.keepsOthersOut(e) }), others)
	e.witnesses[a] = true
	e.mu.Unlock()
	waiting, end := ctx, func() {}
	if l.options.DeadlockCheck {
		waiting, end = a.watchDeadlocks(ctx)
	}
	h, err := a.run(waiting)
	end()
	e.mu.Lock()
	delete(e.witnesses, a)
	e.mu.Unlock()
	return a.beginLease(h, err)
}

// noteLeft tells the attempts whose evidence names a lease that the lease ended and its hold did
// not. The engine's mutex is held.
func (e *Engine) noteLeft(l *Lease) {
	for a := range e.witnesses {
		if slices.Contains(a.evidence.leases, l) {
			a.evidence.stale = true
			a.mailbox.messages.askNow = true
			a.mailbox.wake()
		}
	}
}

// renewEvidence changes to a new ticket if a lease ended that the present one names. It is called
// before a request.
func (a *attempt) renewEvidence() {
	e := a.engine
	e.mu.Lock()
	if !a.evidence.stale {
		e.mu.Unlock()
		return
	}
	left := slices.DeleteFunc(a.evidence.leases, func(lease *Lease) bool { return !lease.keepsOthersOut(e) })
	others := a.evidence.others
	e.mu.Unlock()
	a.replace(a.lock, a.ticket.NoMessages)
	e.mu.Lock()
	defer e.mu.Unlock()
	a.setEvidence(left, others)
}

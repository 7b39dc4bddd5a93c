package quorum

import (
	"context"
	"math/bits"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A wait is what is remembered of a ticket from its first Ask until it holds, is given back or is
// given up. The protocol's mutex guards it.
type wait struct {
	p      *Protocol
	id     protocol.ID
	since  time.Time // of the first Ask
	asks   int       // so many Asks began; giveUp ends the wait only if none began since
	rounds int64     // the last when it began to wait
	nudges uint16    // the nodes that said the name is free, since the last Ask

	r      *resource // once it waits
	ticket protocol.Ticket
	stop   func() bool // what looks at the end of its context
}

// beginWait notes that a ticket asks.
func (p *Protocol) beginWait(id protocol.ID) *wait {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waits[id]
	if w == nil {
		w = &wait{p: p, id: id, since: time.Now()}
		if p.over {
			return w
		}
		p.waits[id] = w
	}
	w.asks++
	w.nudges = 0
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	return w
}

// startWaiting notes that the nodes remember the ticket. The waiter may end by its context alone,
// without another request. Then the nodes are told, and wake the next. It returns which ask it was,
// for giveUp.
func (w *wait) startWaiting(ctx context.Context, r *resource, ticket protocol.Ticket) (asks int) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.r, w.ticket = r, ticket
	asks = w.asks
	w.rounds = w.p.rounds.Load() // a later ask's are larger, and what it holds stays
	w.stop = context.AfterFunc(ctx, func() {
		// Another goroutine may go on with the ticket: it asks at once.
		time.AfterFunc(takeOverTime, func() {
			w.giveUp(asks)
		})
	})
	return asks
}

// takeOverTime is how long another goroutine has to go on with the ticket of one that gave up.
const takeOverTime = 20 * time.Millisecond

// giveUp tells the nodes that nobody waits with the ticket any more, unless it asked again.
func (w *wait) giveUp(asks int) {
	p := w.p
	p.mu.Lock()
	if p.waits[w.id] != w || w.asks != asks || p.over {
		p.mu.Unlock()
		return
	}
	delete(p.waits, w.id)
	r, round := w.r, w.rounds
	if w.stop != nil {
		w.stop()
	}
	p.mu.Unlock()
	if r == nil {
		return
	}
	c := r.cleanupOf(w.ticket)
	c.how, c.round = freeWaiter, round
	for _, n := range p.nodes {
		n.addCleanup(c)
	}
}

// isWaiting reports whether a ticket asks, or waits, by now.
func (p *Protocol) isWaiting(id protocol.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits[id] != nil
}

// forgetWait forgets a ticket that holds, or is given back.
func (p *Protocol) forgetWait(id protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waits[id]; w != nil {
		if w.stop != nil {
			w.stop()
		}
		delete(p.waits, id)
	}
}

// noteNudge takes a node's word that the name of a ticket is free, and tells when it is worth
// asking: at once if a majority says so, as before that the others may not know yet; a little later
// if few do.
func (p *Protocol) noteNudge(id protocol.ID, node int) (after time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waits[id]
	if w == nil {
		return 0, true // a watcher
	}
	if w.nudges&(1<<node) != 0 {
		w.nudges = 0 // told again: the name is free sooner than the last said
	}
	w.nudges |= 1 << node
	switch bits.OnesCount16(w.nudges) {
	case 1:
		return 10 * time.Millisecond, true
	case p.need:
		return 0, true
	}
	return 0, false
}

// A repair is what is known of an id that is being renewed. The renewal may set its hold again at
// nodes that missed it, also after the renewal was answered. By then the hold may have been given
// back.
type repair struct {
	renewals int
	freed    bool
}

// beginRenewal notes that ids are being renewed.
func (p *Protocol) beginRenewal(renewals []protocol.Renewal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range renewals {
		id := renewals[i].Ticket.ID
		if p.repairs[id] == nil {
			p.repairs[id] = &repair{}
		}
		p.repairs[id].renewals++
	}
}

// endRenewal notes that they are no more.
func (p *Protocol) endRenewal(renewals []protocol.Renewal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range renewals {
		id := renewals[i].Ticket.ID
		if m := p.repairs[id]; m.renewals == 1 {
			delete(p.repairs, id)
		} else {
			m.renewals--
		}
	}
}

// markFreed notes that an id was given back. From here on it is not set again, and a release at a
// node waits for what is on its way there.
func (p *Protocol) markFreed(id protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.repairs[id]; m != nil {
		m.freed = true
	}
}

// repairSent notes that an id is set again at a node. It is false if the id was given back.
func (p *Protocol) repairSent(n *node, id protocol.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.repairs[id]; m == nil || m.freed {
		return false
	}
	n.askSent(id)
	return true
}

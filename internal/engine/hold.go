package engine

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A holdState is where a hold is in its life. See the package document.
type holdState uint8

const (
	holdHeld        holdState = iota // as its lock asked for it: it excludes others, or it shares
	holdRetained                     // as before, and nobody uses it
	holdDowngrading                  // a request to share is under way, or may have been applied
	holdSharing                      // it was downgraded
	holdDetached                     // it has left the process: another one goes on with it, or none
	holdReleasing                    // it is being given back, or was
	holdLost                         // no lease on it is trusted; the server may still keep it
	holdCleared                      // lost, and the server denied it or its cleanup was scheduled
)

// holdMoves are the states that may follow each state.
var holdMoves = [...][]holdState{
	holdHeld:        {holdRetained, holdDowngrading, holdDetached, holdReleasing, holdLost, holdCleared},
	holdRetained:    {holdHeld, holdReleasing, holdLost, holdCleared},
	holdDowngrading: {holdHeld, holdSharing, holdReleasing, holdLost, holdCleared},
	holdSharing:     {holdDetached, holdReleasing, holdLost, holdCleared},
	holdDetached:    {},
	holdReleasing:   {},
	holdLost:        {holdCleared},
	holdCleared:     {},
}

func (s holdState) String() string {
	return [...]string{"held", "retained", "downgrading", "sharing", "detached", "releasing", "lost", "cleared"}[s]
}

// A hold is one hold at the server, from its grant until it is given back or lost. Its local
// holders follow one another, each with a tenure (localTenure). The engine's mutex guards its
// fields, except those of its grant, which never change and are read without it.
//
// A process may have very many holds, so what few of them need is apart (rareState).
type hold struct {
	grant
	token       int64 // the fencing token of the present tenure
	trustWindow       // until when this process may act on it
	renewal           // what prolongs the trust
	localUse          // the goroutines that have it, or may get it
	state       holdState
	wanted      bool    // another process asked for it
	isTold      bool    // messages must come that others ask for it
	ticketNamed bool    // others name its ticket: it is not passed on any more
	due         dueTime // when the watchdog has to look at it: for its renewal or its end

	*rareState // never nil; change makes one of the hold's own
}

// A rareState is what few holds have. All others share one that is empty.
type rareState struct {
	// Until then a request without an answer may still take effect: an ask, which would win the
	// hold again, or a downgrade. Zero: none may.
	mayApplyUntil time.Time

	before     *predecessor  // the holder that its attempt waited for; nil: none, or nothing is told
	sharing    *Lock         // as what the server has it since it was downgraded; nil: as its lock asked for it
	downgraded *Lock         // as what the server may have it too, while a downgrade is under way; else nil
	maxHoldEnd time.Time     // the end of the max hold, which nothing moves; zero: no max hold
	lasts      time.Duration // of an attached hold that is not renewed: its time from the grant on

	// Of an attached hold: how much more than the time of the grant the server's clock showed, at
	// least, at heldSince.
	attachedAfter time.Duration

	queries    int       // whether it was broken: the one under way, and what asked for another; 0: none is
	heardSince time.Time // since when messages tell of a Break; zero: it is not known that they do
	brokenBy   string    // the label of the operator that broke it, once the server said so

	successor protocol.ID // the waiter that a Transfer names; empty: none
	failure   error       // of the last renewal; nil if it was answered
	lossCause error       // the cause of its leases' end, once it is lost; else nil
}

// nothingRare is the rareState of most holds. Nobody writes to it.
var nothingRare rareState

// change returns the rareState of a hold to be changed. The engine's mutex is held, or the hold is
// new.
func (h *hold) change() *rareState {
	if h.rareState == &nothingRare {
		h.rareState = new(rareState)
	}
	return h.rareState
}

// A grant is what this process knows of the grant of a hold.
type grant struct {
	lock   *Lock
	ticket protocol.Ticket

	grantToken int64 // the first token of the grant
	lastToken  int64 // the last token that the grant reserved for the tenures to come

	grantedAt int64     // the server's time of the grant, in microseconds
	heldSince time.Time // when this process learned of the grant, or attached the hold
}

// A trustWindow says until when this process may act on a hold, by its own clocks. Its end, and the
// end of the max hold, are earlier than those at the server by a margin, which covers the drift of
// the clocks.
type trustWindow struct {
	trustEnd time.Time     // the end by the last confirmation, which the next one moves
	promised time.Duration // how long the hold lasts by that confirmation
}

// end is when trust ends, as far as is known now. A zero maxHoldEnd does not count (earlier).
func (h *hold) end() time.Time { return earlier(h.maxHoldEnd, h.trustEnd) }

// A renewal is what the watchdog knows of the renewals of a hold. While a downgrade is under way it
// stands in the place of a renewal.
type renewal struct {
	renewAt  time.Time     // when the next one is due; zero: none is to be sent
	renewing chan struct{} // closed with the answer to the one under way; nil: none is
	late     time.Duration // how late this process was with one, at most, since the last confirmation
}

// noteLate notes how late this process is with the renewal that is due, by either clock. The
// engine's mutex is held.
func (r *renewal) noteLate(now time.Time) {
	if !r.renewAt.IsZero() {
		r.late = max(r.late, now.Sub(r.renewAt), now.Round(0).Sub(r.renewAt.Round(0)))
	}
}

// endRenewal wakes the goroutines that wait for the renewal under way, or for the downgrade in its
// place: a release, a downgrade, or a query. The engine's mutex is held.
func (r *renewal) endRenewal() {
	if r.renewing != nil {
		close(r.renewing)
		r.renewing = nil
	}
}

// A localUse is what the goroutines of this process make of a hold: they have it one after the
// other, or as readers together.
type localUse struct {
	pool        *pool         // whose goroutines get it next, or join it; nil: none do
	tenure      *localTenure  // the present one; nil before the first
	firstTenure localTenure   // most holds have one, which costs no allocation of its own
	joinableFor time.Duration // of readers: how long from heldSince goroutines join it; 0: until it is recalled
	retention   *retainState  // nil: it never stays unused
}

// serverModes are the ways in which the server may have the hold: as the lock asked for it, or as
// one that shares. Nobody knows which while a downgrade has no answer, so a free must name both.
type serverModes struct {
	current    *Lock
	downgraded *Lock // nil: no downgrade is under way
}

// serverModes are the ways in which the server may have a hold. The engine's mutex is held.
func (h *hold) serverModes() serverModes { return serverModes{h.mode(), h.downgraded} }

// mode is the way in which the server is known to have the hold. The engine's mutex is held.
func (h *hold) mode() *Lock {
	if h.sharing != nil {
		return h.sharing
	}
	return h.lock
}

// all are the modes in the order in which the hold passes through them.
func (m serverModes) all() []*Lock {
	if m.downgraded == nil {
		return []*Lock{m.current}
	}
	return []*Lock{m.current, m.downgraded}
}

// to moves the hold to another state. It returns false and changes nothing if the present state
// does not allow that. The engine's mutex is held.
func (h *hold) to(next holdState) bool {
	if !slices.Contains(holdMoves[h.state], next) {
		return false
	}
	if h.state == holdRetained {
		h.lock.engine.unused--
	}
	if next == holdRetained {
		h.lock.engine.unused++
	}
	h.state = next
	return true
}

// isLive reports whether the hold is neither lost nor being given back. The engine's mutex is held.
func (h *hold) isLive() bool {
	switch h.state {
	case holdHeld, holdRetained, holdDowngrading, holdSharing:
		return true
	}
	return false
}

// prolongTrust notes that the server keeps the hold for ttl, counted from the moment at which the
// request was sent, as the answer does not say when the server got it. There is no renewal if the
// lock forbids it, or if trust ends with the max hold anyway. The engine's mutex is held, or the
// hold is new.
func (h *hold) prolongTrust(sent time.Time, ttl time.Duration) {
	h.trustEnd = sent.Add(ttl - margin(ttl))
	h.promised = ttl
	if h.late = 0; h.failure != nil {
		h.change().failure = nil
	}
	h.renewAt = time.Time{}
	prolongable := h.maxHoldEnd.IsZero() || h.trustEnd.Before(h.maxHoldEnd)
	if prolongable && !h.lock.options.Fixed {
		h.renewAt = sent.Add(renewalDelay(ttl, h.lock.options.TTL))
	}
}

// newHold makes the hold that an attempt won, which lasts for ttl. That counts from a local moment
// that is certainly before the grant. It returns nil if trust in the hold is over already.
func (a *attempt) newHold(n protocol.Answer, from time.Time, ttl time.Duration) *hold {
	h := &hold{
		grant: grant{
			lock: a.lock, ticket: a.ticket,
			grantToken: n.Token, lastToken: n.Token + n.Block - 1,
			grantedAt: n.Server, heldSince: time.Now(),
		},
		token:     n.Token,
		rareState: &nothingRare,
	}
	if !a.mayApplyUntil.IsZero() {
		h.change().mayApplyUntil = a.mayApplyUntil
	}
	if maxHold := a.lock.options.MaxHold; maxHold > 0 {
		h.change().maxHoldEnd = from.Add(maxHold - margin(maxHold)) // the clocks may drift apart for so long
	}
	if a.call.contended {
		if before := a.predecessor(); before != nil {
			h.change().before = before
		}
	}
	h.prolongTrust(from, ttl)
	if isPast(h.end(), h.heldSince) {
		return nil
	}
	return h
}

// entry implements scheduleEntry.
func (h *hold) entry() *dueTime { return &h.due }

// dueAt implements scheduleEntry.
func (h *hold) dueAt() time.Time {
	at := earlier(h.renewAt, h.end())
	if h.state == holdRetained {
		at = earlier(at, h.retention.until)
	}
	return at
}

// asAnswer is what an answer of the server would tell of a hold of this process.
func (h *hold) asAnswer() protocol.Answer {
	answer := protocol.Answer{Status: protocol.Busy, Holders: 1}
	answer.Holder.Label, answer.Holder.Trace, answer.Token = h.lock.spec.Label, h.ticket.Trace, h.grantToken
	if h.lock.engine.features.Queue { // several masters have no common clock
		answer.Since = h.grantedAt
	}
	return answer
}

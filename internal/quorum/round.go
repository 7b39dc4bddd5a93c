package quorum

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A verdict is what a round came to.
type verdict int

const (
	undecided    verdict = iota
	held                 // a majority holds for us, with our token
	tokenRefused         // a majority holds for us, and not all of it accepted the token
	busy                 // another holds, or may
	split                // nobody has a majority
	leftToWaiter         // what was given back is left to a waiter
	failed               // an error
)

// A round is one question of an Ask to all nodes, with one token for all.
type round struct {
	tally
	r       *resource
	verdict verdict
	err     error // of a round that failed; nil: there is no majority
}

// runRound runs a round, and returns as soon as it is decided. Replies that come later are handled
// in the background: what they won is given back unless the name is held.
func (t *acquisition) runRound(ctx context.Context, first int64) *round {
	number := t.r.p.rounds.Add(1)
	asked := t.sendRound(number, first)
	out := &round{r: t.r, tally: tally{p: t.r.p}}
	ended := asked.collect(ctx, func(a *reply) progress {
		out.add(a)
		if out.verdict == undecided { // else it completes the error
			out.judge()
		}
		switch out.verdict {
		case undecided:
			return goOn
		case failed:
			return goOnBriefly
		}
		return stop
	})
	if out.verdict == undecided {
		out.verdict, out.err = failed, t.r.asFailure("lock", ended)
	}
	if n, foreign := out.foreign(); out.verdict == failed && n > out.p.spare() {
		out.err = foreign
	}
	outcome := t.outcome
	t.r.p.startWorker(func() {
		<-outcome.known
		for _, a := range out.replies {
			t.cleanUpAfter(a, number, outcome.held)
		}
		asked.collectRest(func(a *reply) { t.cleanUpAfter(a, number, outcome.held) })
	})
	return out
}

// sendRound asks all nodes. At each node the ask waits for the releases of the name that are on
// their way.
func (t *acquisition) sendRound(number, first int64) *fanOut[*reply] {
	return prepareAndAsk(t.r.p, t.r.p.nodes, func(n *node) func() *reply {
		n.askSent(t.ask.Ticket.ID)
		before := n.releasesBefore(t.r.spec.Name)
		return func() *reply {
			defer n.askDone(t.ask.Ticket.ID)
			if !awaitClosed(before, t.ask.Deadline) {
				return &reply{node: n, err: n.noAnswer("lock", t.r.spec.Name, errEarlier)} // it must not overtake them
			}
			return t.askNode(n, number, first)
		}
	})
}

// judge decides, if the replies so far allow it. What nodes that do not count say is read, and not
// counted.
func (t *round) judge() {
	won := t.votes(letterHeld + letterRefused)
	switch need := t.p.need; {
	case t.votes(letterHeld) >= need:
		t.verdict = held
	case won >= need:
		t.verdict = tokenRefused
	case won+t.pending() >= need: // undecided: we may win yet
	default:
		if t.err = t.refusal(); t.err != nil {
			t.verdict = failed
		} else {
			t.verdict = t.judgeLost()
		}
	}
}

// refusal returns why the ticket can never hold, or nil.
func (t *round) refusal() error {
	upgrades := t.votes(letterUpgrade)
	foreign, foreignErr := t.foreign()
	switch {
	case t.votes(letterBroken) > 0:
		return t.r.brokenError(&t.tally)
	case upgrades > 0 && (upgrades >= t.p.need || t.pending() == 0):
		return &protocol.Upgrade{Name: t.r.spec.Name}
	case foreign > t.p.spare():
		return foreignErr
	}
	return nil
}

// judgeLost returns the verdict of a round that we cannot win any more.
func (t *round) judgeLost() verdict {
	need, pending, answered, given := t.p.need, t.pending(), t.counting(), t.votes(letterLeft)
	uncounted := len(t.replies) - answered // they may hold the name, or not
	holders, _ := t.mostHeld()
	switch {
	case answered+pending < need:
		return failed
	case answered < need:
		return undecided // too few have answered
	case holders+given >= need && given == 0:
		return busy
	case holders+given >= need:
		return leftToWaiter
	case pending > 0 && holders+pending+uncounted >= need:
		return undecided // a majority may name one holder yet
	case given > 0:
		return leftToWaiter
	case holders+uncounted >= need:
		return busy
	}
	return split
}

// largestToken returns the largest token that any node has accepted, also one that does not count.
func (t *round) largestToken() (largest int64) {
	for _, a := range t.replies {
		largest = max(largest, a.facts.last)
	}
	return largest
}

// mostHeld returns how many nodes name the holder that most of them name, and a reply that does.
func (t *round) mostHeld() (n int, of *reply) {
	return most(&t.tally, func(a *reply) (protocol.ID, bool) { return a.holder, a.hasStatus(letterBusy) })
}

// tokenOf returns the token of a hold if a majority names it, and else 0.
func (t *round) tokenOf(holder protocol.ID) int64 {
	n, of := most(&t.tally, func(a *reply) (int64, bool) {
		return a.token, a.hasStatus(letterBusy) && a.holder == holder
	})
	if n < t.p.need {
		return 0
	}
	return of.token
}

// contenders returns how many others seem to want the name.
func (t *round) contenders() int {
	var ids []protocol.ID
	waiters := 0
	for _, a := range t.replies {
		if a.hasStatus(letterBusy) {
			waiters = max(waiters, a.waiters)
			if !slices.Contains(ids, a.holder) {
				ids = append(ids, a.holder)
			}
		}
	}
	return len(ids) + waiters
}

// When a waiter asks again, it draws from a time that grows with the contenders, so that they do
// not all ask at once.
const (
	drawAfterEnd   = 4 * time.Millisecond // for each contender, up to 256, after the end of the hold
	drawSoon       = 5 * time.Millisecond // for each contender, up to 64, if no majority names a holder
	soonest        = 20 * time.Millisecond
	factorIfHidden = 10 // a holder may hold at nodes that do not answer
)

// busyAnswer returns the answer that others hold. A waiter for the end of a hold that nobody
// prolongs asks a little later the more others wait. If nobody is known to hold it asks soon: then
// no message need come.
func (t *round) busyAnswer(join bool) protocol.Answer {
	answer := protocol.Answer{Status: protocol.Busy, Server: t.p.now()}
	holders, of := t.mostHeld()
	if of != nil {
		answer.Holder, answer.Token = of.party, t.tokenOf(of.holder)
		answer.Left, answer.By = of.left, of.leftBy
	}
	var ends []time.Duration
	for _, a := range t.replies {
		if a.hasStatus(letterBusy) {
			ends = append(ends, a.remaining)
			answer.Holders = max(answer.Holders, a.holders) // some nodes may not know a hold that shares
			answer.Waiters = max(answer.Waiters, a.waiters)
		}
	}
	slices.Sort(ends) // with so many of them over, a majority could be ours
	if at := t.p.need - t.votes(letterHeld+letterRefused) - 1; len(ends) > 0 {
		answer.Remaining = ends[min(max(at, 0), len(ends)-1)]
	}
	if !join {
		return answer
	}
	contenders := 1 + t.contenders()
	answer.Waiters = 0 // a quorum has no queue: none of them is before this one
	if holders >= t.p.need {
		answer.Remaining += rand.N(time.Duration(min(contenders, 256)) * drawAfterEnd)
		return answer
	}
	soon := soonest + rand.N(time.Duration(min(contenders, 64))*drawSoon)
	if t.verdict == busy {
		soon *= factorIfHidden
	}
	if len(ends) == 0 || soon < answer.Remaining {
		answer.Remaining = soon
	}
	return answer
}

func (t *round) failure() error {
	if t.err != nil {
		return t.r.asFailure("lock", t.err)
	}
	return t.noMajority("lock", t.r.spec.Name)
}

// cleanUpAfter handles one reply once it is known what became of the Ask.
func (t *acquisition) cleanUpAfter(a *reply, number int64, held bool) {
	if t.ask.Release != nil && a.status == 0 {
		// The hold that it gave back may still be there. That hold goes when the request can take
		// effect no more, at the latest.
		c := t.r.cleanupOf(*t.ask.Release)
		c.until = t.ask.Deadline.Add(t.ask.TTL)
		if a.mayApply() {
			c.notBefore = t.ask.Deadline
		}
		a.node.addCleanup(c)
	}
	if held {
		if a.status == 'B' && t.ask.Join {
			// The node knows it as one that waits. The release tells that it does not, if it comes
			// before.
			c := t.r.cleanupOf(t.ask.Ticket)
			c.how, c.round, c.notBefore = freePlace, 0, t.ask.Deadline.Add(time.Second)
			a.node.addCleanup(c)
		}
		return
	}
	c := cleanup{resource: t.r, id: t.ask.Ticket.ID, round: number, how: freeQuietly, notBefore: time.Now(),
		until: t.ask.Deadline.Add(t.ask.TTL)}
	switch {
	case a.holds():
		a.node.addCleanup(c)
	case a.mayApply():
		c.notBefore = t.ask.Deadline.Add(time.Millisecond)
		a.node.addCleanup(c)
	}
}

// askNode asks one node in the round of this number.
func (t *acquisition) askNode(n *node, number, first int64) *reply {
	r, ask := t.r, &t.ask
	out := &reply{node: n}
	if ask.Release != nil && !n.awaitAsks(ask.Release.ID, ask.Deadline) {
		out.err = n.noAnswer("lock", r.spec.Name, errEarlier)
		return out
	}
	if n.twin.Load() != nil { // the server is asked at another node, and takes a token from one of them alone
		if out.facts, out.err = n.meet(ask.Deadline, "", ""); out.err != nil || out.facts.same != nil {
			return out
		}
	}
	out = n.queryInTime(&r.p.scripts.ask, r.spec.Name, ask.Deadline, func(notAfter string) []any {
		return t.askArgs(notAfter, number, first)
	}, (*reply).readAsk)
	learn(&r.p.known[r.bucket], out.facts.last)
	return out
}

// askArgs returns the command of a round: see ask.lua.
func (t *acquisition) askArgs(notAfter string, number, first int64) []any {
	r, ask := t.r, &t.ask
	how, release := "t", ""
	switch {
	case t.repair:
		how = "r"
	case ask.Join:
		how = "j"
	}
	if ask.Release != nil {
		release = string(ask.Release.ID)
	}
	return []any{nil, nil, 4, r.state, r.waiting, r.watching, r.p.factsKey(),
		string(ask.Ticket.ID), r.mode, r.payloadOf(ask.Ticket), r.spec.Owner, wire.Millis(ask.TTL), notAfter, how,
		wire.Digits16(first),
		wire.Digits16(first + ask.Ticket.Block - 1), wire.Digits16(number), r.field, release, r.waiter(ask.Ticket),
		t.waited.Microseconds(), r.life, r.p.config.MaxTTL.Milliseconds()}
}

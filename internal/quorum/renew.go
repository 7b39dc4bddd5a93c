package quorum

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// renewBatch is how many names one command has: enough to be cheap, few enough not to hold up
// others.
const renewBatch = 100

// Renew implements protocol.Protocol: a command a node for many names. Each name is answered as
// soon as a majority is certain. A node that missed a hold, or has forgotten it, is told of it
// again.
func (p *Protocol) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.RenewalAnswer)) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	var answered sync.WaitGroup
	for from := 0; from < len(renewals); from += renewBatch {
		part := renewals[from:min(from+renewBatch, len(renewals))]
		answered.Add(1)
		t := &renewalRound{
			tally: tally{p: p}, renewals: part, deadline: deadline, answered: answered.Done,
			done:  func(i int, r protocol.RenewalAnswer) { done(from+i, r) },
			holds: make([]renewedHold, len(part)), open: len(part),
		}
		p.startWorker(func() { t.run(ctx) })
	}
	answered.Wait()
}

// A renewalRound is the renewals of one command.
type renewalRound struct {
	tally
	renewals []protocol.Renewal
	deadline time.Time
	done     func(i int, r protocol.RenewalAnswer)
	answered func() // called once all renewals are

	holds []renewedHold // one for each renewal
	open  int           // renewals without an answer
}

// A renewedHold is what became of one renewal.
type renewedHold struct {
	decided, held bool
	missing       []*node // that are to be told of the hold again
}

// run asks all nodes, answers what is decided, and repairs. It goes on until the last node has
// replied, though all is answered before.
func (t *renewalRound) run(ctx context.Context) {
	var repairs sync.WaitGroup
	t.p.beginRenewal(t.renewals)
	defer func() {
		repairs.Wait()
		t.p.endRenewal(t.renewals)
	}()
	take := func(a *reply) progress {
		t.takeReply(a)
		t.repair(&repairs)
		return goOn
	}
	asked := askNodes(t.p, t.p.nodes, t.askNode)
	if ended := asked.collect(ctx, take); ended != nil {
		t.failUndecided(func(name string) error {
			return noAnswer("renew", name, ended).OrUnknown(true)
		})
		asked.collectRest(func(a *reply) { take(a) })
	}
}

// takeReply takes what a node says of all holds, and answers the renewals that are decided by it.
func (t *renewalRound) takeReply(a *reply) {
	t.add(a)
	for i := range t.holds {
		h := &t.holds[i]
		switch a.letterOf(i) {
		case 0, '1', 'F', 'R': // it knows the hold, or nothing is to be set there
		default: // it does not know the hold, or refused the tokens that a majority accepted
			h.missing = append(h.missing, a.node)
		}
		if !h.decided {
			t.decide(i)
		}
	}
	if t.pending() == 0 {
		t.failUndecided(func(name string) error { return t.noMajority("renew", name) })
	}
}

// letterOf returns what the node says of a hold; 0 if it gave no answer.
func (a *reply) letterOf(i int) byte {
	if a.err != nil {
		return 0
	}
	return a.letters[i]
}

// decide answers a renewal, if the replies so far allow it.
func (t *renewalRound) decide(i int) {
	r, spare := t.renewals[i].Resource.(*resource), t.p.spare()
	say := func(letters string) func(*reply) bool {
		return func(a *reply) bool { return a.letterOf(i) != 0 && strings.IndexByte(letters, a.letterOf(i)) >= 0 }
	}
	yes := t.count(func(a *reply) bool { return a.counts && say("1T")(a) })
	foreign, no := t.count(say("F")), t.count(say("0R"))
	switch {
	case yes >= t.p.need:
		t.holds[i].held = true
		t.answer(i, protocol.RenewalAnswer{Held: true})
	case foreign > spare:
		t.answer(i, protocol.RenewalAnswer{Err: &protocol.Foreign{Op: "renew", Name: r.spec.Name, Key: r.state.(string),
			Found: "of another type, kind or format", Want: "what a quorum keeps of this kind"}})
	case no+foreign > spare && foreign+t.pending() <= spare: // else the key may yet be of another kind
		// others are kept out until its holder has stopped
		if broken := slices.IndexFunc(t.replies, say("R")); broken >= 0 {
			by := t.replies[broken].brokeBy[i]
			t.answer(i, protocol.RenewalAnswer{Err: &protocol.Broken{Name: r.spec.Name, By: by}})
			return
		}
		t.answer(i, protocol.RenewalAnswer{})
		if t.renewals[i].TTL > 0 {
			r.releaseEverywhere(t.renewals[i].Ticket) // a minority that keeps it keeps others out
		}
	}
}

func (t *renewalRound) answer(i int, r protocol.RenewalAnswer) {
	t.holds[i].decided = true
	t.done(i, r)
	if t.open--; t.open == 0 {
		t.answered()
	}
}

// failUndecided answers all renewals that are not decided.
func (t *renewalRound) failUndecided(because func(name string) error) {
	for i := range t.holds {
		if !t.holds[i].decided {
			t.answer(i, protocol.RenewalAnswer{Err: because(t.renewals[i].Resource.(*resource).spec.Name)})
		}
	}
}

func (t *renewalRound) askNode(n *node) *reply {
	p, now := t.p, time.Now()
	args := make([]any, 4, 4+6*len(t.renewals))
	args[2], args[3] = len(t.renewals)+1, p.factsKey()
	for i := range t.renewals {
		args = append(args, t.renewals[i].Resource.(*resource).state)
	}
	for i := range t.renewals {
		renewal := &t.renewals[i]
		ttl, ceiling := renewal.TTL, ""
		if renewal.Floor != 0 {
			ttl = max(ttl, p.local(renewal.Floor).Sub(now))
		}
		if renewal.Ceiling != 0 {
			end := p.local(renewal.Ceiling)
			ttl = min(ttl, end.Sub(now))
			ceiling = n.clock.ceiling(end, renewal.Trusted)
		}
		long := int64(0)
		if renewal.TTL > 0 {
			long = wire.Millis(ttl)
		}
		args = append(args, string(renewal.Ticket.ID), renewal.Resource.(*resource).mode, long, ceiling,
			wire.Digits16(renewal.Token))
	}
	return n.query(&p.scripts.renew, "", t.deadline, args, func(a *reply, text string) bool {
		return a.readRenewal(text, len(t.renewals))
	})
}

// repair sets holds again that are ours by majority, at the nodes that do not know of them and know
// of no other hold.
func (t *renewalRound) repair(under *sync.WaitGroup) {
	for i := range t.holds {
		h := &t.holds[i]
		if !h.held || t.renewals[i].TTL <= 0 {
			continue
		}
		missing := h.missing
		h.missing = nil
		for _, n := range missing {
			under.Go(func() { t.renewals[i].Resource.(*resource).setHold(n, &t.renewals[i], t.deadline) })
		}
	}
}

// setHold sets a hold at one node, unless it was given back meanwhile.
func (r *resource) setHold(n *node, renewal *protocol.Renewal, deadline time.Time) {
	id, ttl := renewal.Ticket.ID, renewal.TTL
	if renewal.Floor != 0 {
		ttl = max(ttl, time.Until(r.p.local(renewal.Floor)))
	}
	if renewal.Ceiling != 0 { // also if it arrives at the last moment
		ttl = min(ttl, r.p.local(renewal.Ceiling).Sub(deadline))
	}
	if ttl < time.Millisecond || !r.p.repairSent(n, id) {
		return
	}
	defer n.askDone(id)
	t := &acquisition{r: r, ask: protocol.Ask{Ticket: renewal.Ticket, TTL: ttl, Deadline: deadline}, repair: true}
	if a := t.askNode(n, endless, renewal.Token); a.holds() {
		r.p.config.Logger.Info("holdfast: a node was told of a hold again",
			"name", r.spec.Name, "node", nodeName(n.index))
	}
}

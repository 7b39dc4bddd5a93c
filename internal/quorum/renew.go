package quorum

import (
	"context"
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
func (p *Protocol) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.Renewed)) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	parts := 0
	finished := make(chan struct{}, len(renewals)/renewBatch+1)
	for from := 0; from < len(renewals); from += renewBatch {
		to := min(from+renewBatch, len(renewals))
		part := &renewalRound{p: p, renewals: renewals[from:to], deadline: deadline,
			done: func(i int, r protocol.Renewed) { done(from+i, r) }}
		parts++
		p.run(func() {
			part.run(ctx, finished)
		})
	}
	for range parts {
		<-finished
	}
}

// A renewalRound is the renewals of one command.
type renewalRound struct {
	p        *Protocol
	renewals []protocol.Renewal
	deadline time.Time
	done     func(i int, r protocol.Renewed)
}

// A renewalVerdict counts the answers about one hold.
type renewalVerdict struct {
	yes, no, foreign int
	by               *string // the label of the caller that broke the hold, if a node says so
	decided, held    bool
	missing          []*node
}

// run asks all nodes, answers what is decided, and repairs. It says that all is answered before the
// last nodes have.
func (t *renewalRound) run(ctx context.Context, finished chan<- struct{}) {
	p := t.p
	var repairs sync.WaitGroup
	p.beginRenewal(t.renewals)
	defer func() {
		repairs.Wait()
		p.endRenewal(t.renewals)
	}()
	replies := make(chan *renewalReply, len(p.nodes))
	for _, n := range p.nodes {
		p.run(func() { replies <- t.ask(n) })
	}
	verdicts := make([]renewalVerdict, len(t.renewals))
	answers := p.noAnswers()
	open, cancelled := len(verdicts), ctx.Done()
	for pending := len(p.nodes); pending > 0; {
		select {
		case a := <-replies:
			pending--
			answers[a.node.index] = p.answerOf(a.node, a.facts, a.counts, a.err)
			if a.err == nil {
				open -= t.count(a, verdicts, pending)
			}
		case <-cancelled:
			cancelled = nil
			open -= t.fail(verdicts, func(name string) error {
				return &protocol.Failure{Op: "renew", Name: name, Reason: protocol.NoAnswer, Unknown: true, Err: protocol.EndOf(ctx)}
			})
		}
		if pending == 0 && open > 0 {
			open -= t.fail(verdicts, func(name string) error { return p.noMajority("renew", name, answers) })
		}
		if open == 0 && finished != nil {
			finished <- struct{}{}
			finished = nil
		}
		t.repair(verdicts, &repairs)
	}
}

// count takes one node's answers, while others are pending, and returns how many holds they
// decided.
func (t *renewalRound) count(a *renewalReply, verdicts []renewalVerdict, pending int) (decided int) {
	for i := range verdicts {
		v := &verdicts[i]
		v.count(a, i)
		if v.decided {
			continue
		}
		if t.decide(i, v, pending); v.decided {
			decided++
		}
	}
	return decided
}

// count takes what one node says of the hold.
func (v *renewalVerdict) count(a *renewalReply, i int) {
	switch a.text[i] {
	case '1', 'T':
		if a.counts {
			v.yes++
		}
		if a.text[i] == 'T' { // it refused the tokens that a majority accepted
			v.missing = append(v.missing, a.node)
		}
	case 'F':
		v.foreign++
	case 'R': // nothing is set there again
		v.no++
		if by := a.by[i]; v.by == nil {
			v.by = &by
		}
	default:
		v.no++
		v.missing = append(v.missing, a.node)
	}
}

// decide answers a renewal, if the answers so far allow it.
func (t *renewalRound) decide(i int, v *renewalVerdict, pending int) {
	p, few := t.p, len(t.p.nodes)-t.p.need
	r := t.renewals[i].Resource.(*resource)
	switch {
	case v.yes >= p.need:
		v.decided, v.held = true, true
		t.done(i, protocol.Renewed{Held: true})
	case v.foreign > few:
		v.decided = true
		t.done(i, protocol.Renewed{Err: &protocol.Foreign{Op: "renew", Name: r.spec.Name, Key: r.state.(string),
			Is: "of another type, kind or format", Want: "what a quorum keeps of this kind"}})
	case v.no+v.foreign > few && v.foreign+pending <= few: // else the key may yet be of another kind
		v.decided = true
		if v.by != nil { // others are kept out until its holder has stopped
			t.done(i, protocol.Renewed{Err: &protocol.Broken{Name: r.spec.Name, By: *v.by}})
			return
		}
		t.done(i, protocol.Renewed{})
		if t.renewals[i].TTL > 0 {
			r.release(t.renewals[i].Ticket) // a minority that keeps it keeps others out
		}
	}
}

// fail answers all that is not decided.
func (t *renewalRound) fail(verdicts []renewalVerdict, because func(name string) error) (decided int) {
	for i := range verdicts {
		if v := &verdicts[i]; !v.decided {
			v.decided = true
			decided++
			t.done(i, protocol.Renewed{Err: because(t.renewals[i].Resource.(*resource).spec.Name)})
		}
	}
	return decided
}

// A renewalReply is one node's answer to many renewals.
type renewalReply struct {
	node   *node
	facts  facts
	counts bool
	text   string         // a letter each
	by     map[int]string // of holds that were broken
	err    error
}

func (t *renewalRound) ask(n *node) *renewalReply {
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
	out, sent := &renewalReply{node: n}, time.Now()
	text, err := n.ask(&p.scripts.renew, "", t.deadline, args)
	if err != nil {
		out.err = err
		return out
	}
	var ok bool
	if out.facts, out.text, ok = head(text); ok {
		ok = out.read(len(t.renewals))
	}
	if !ok {
		out.err = n.unreadable("renew", "", text)
		return out
	}
	out.counts = n.heard(&out.facts, sent, time.Now(), t.deadline)
	return out
}

// read takes the letters of so many renewals apart from what follows of each "R"; false if there
// are none.
func (a *renewalReply) read(renewals int) bool {
	if len(a.text) < renewals {
		return false
	}
	var rest string
	a.text, rest = a.text[:renewals], a.text[renewals:]
	for i := range a.text {
		if a.text[i] != 'R' {
			continue
		}
		size, tail, found := strings.Cut(rest, ":")
		n, ok := wire.Number(size)
		if !found || !ok || n < 0 || n > int64(len(tail)) {
			return false
		}
		if a.by == nil {
			a.by = make(map[int]string)
		}
		a.by[i], rest = tail[:n], tail[n:]
	}
	return rest == ""
}

// repair sets holds again that are ours by majority, at the nodes that do not know of them and know
// of no other hold.
func (t *renewalRound) repair(verdicts []renewalVerdict, under *sync.WaitGroup) {
	for i := range verdicts {
		v := &verdicts[i]
		if !v.held || len(v.missing) == 0 || t.renewals[i].TTL <= 0 {
			continue
		}
		missing := v.missing
		v.missing = nil
		for _, n := range missing {
			under.Go(func() { t.renewals[i].Resource.(*resource).set(n, &t.renewals[i], t.deadline) })
		}
	}
}

// set sets a hold at one node, unless it was given back meanwhile.
func (r *resource) set(n *node, renewal *protocol.Renewal, deadline time.Time) {
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
	if a := t.askAt(n, endless, renewal.Token); a.won() {
		r.p.config.Logger.Info("holdfast: a node was told of a hold again", "name", r.spec.Name, "node", nodeName(n.index))
	}
}

package quorum

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// format is the number of this wire format, the first byte of every mode and message.
const format = '2'

// A resource sends requests about one name to all nodes.
type resource struct {
	p    *Protocol
	spec protocol.Spec

	state, waiting, watching any // keys; boxed once, as requests carry them

	mode    string // format, kind, and whether it shares
	payload any    // of most tickets
	life    any
	bucket  int
	field   any // the bucket's, at a node
}

func (p *Protocol) bind(spec protocol.Spec) *resource {
	shares := "x"
	if spec.Shared {
		shares = "s"
	}
	bucket := bucketOf(spec.Name)
	return &resource{
		p:        p,
		spec:     spec,
		state:    p.config.Prefix + ":{%quorum}:" + spec.Name,
		waiting:  p.config.Prefix + ":{%quorum}+" + spec.Name,
		watching: p.config.Prefix + ":{%quorum}=" + spec.Name,
		mode:     string([]byte{format, byte(spec.Kind)}) + shares,
		payload:  payload(spec, p.channel),
		life:     max(1, spec.Life.Milliseconds()),
		bucket:   bucket,
		field:    strconv.Itoa(bucket),
	}
}

func (p *Protocol) factsKey() any { return p.config.Prefix + ":{%quorum}" }

// counted puts the length of a text before it.
func counted(text string) string { return strconv.Itoa(len(text)) + ":" + text }

// waiter is how a node remembers a ticket that waits, behind its id and mode.
func (r *resource) waiter(t protocol.Ticket) string {
	if t.NoMessages {
		return ""
	}
	return counted(r.spec.Owner) + r.p.channel
}

// payloadOf is what others read of a hold of a ticket.
func (r *resource) payloadOf(t protocol.Ticket) any {
	if t.NoMessages {
		return payload(r.spec, "")
	}
	return r.payload
}

// A taking is what all rounds of one Ask have in common.
type taking struct {
	r      *resource
	ask    protocol.Ask
	waited time.Duration
	owner  string // of the hold to take over; empty: none
	token  string
	repair bool // set again a hold that is ours, with its token
	fate   *fate
}

// A fate is what becomes of the rounds since the last that was given up.
type fate struct {
	known chan struct{} // closed when held says it
	held  bool
}

func newFate() *fate { return &fate{known: make(chan struct{})} }

// Ask implements protocol.Resource.
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	return r.take(ctx, &taking{r: r, ask: ask, fate: newFate()})
}

// Resume implements protocol.Resource. A majority of nodes must know of the hold; where fewer do, it is as it was.
func (r *resource) Resume(ctx context.Context, ask protocol.Ask, owner string, token int64) (protocol.Answer, error) {
	return r.take(ctx, &taking{r: r, ask: ask, owner: owner, token: wire.Digits16(token), fate: newFate()})
}

// take asks in rounds: again at once with a larger token when that is all that was missing, and after a pause when nobody
// has a majority. It returns before the deadline of the Ask, as soon as a majority has decided.
func (r *resource) take(ctx context.Context, t *taking) (answer protocol.Answer, err error) {
	p, began := r.p, time.Now()
	w := p.begin(t.ask.Ticket.ID)
	t.waited = w.waited(began)
	defer func() {
		close(t.fate.known)
		if t.fate.held || !t.ask.Join {
			p.done(t.ask.Ticket.ID)
		} else {
			asks := w.wait(ctx, r, t.ask.Ticket)
			if err != nil && !passing(err) { // nobody goes on with it
				w.giveUp(asks)
			}
		}
	}()
	if t.ask.Release != nil {
		p.freed(t.ask.Release.ID)
	}
	if err := r.ready(ctx, t.ask.Deadline); err != nil {
		return protocol.Answer{}, r.failed("lock", err)
	}
	patience := t.ask.Deadline.Sub(began) / 2
	floor := int64(0)
	for try := 1; ; try++ {
		first := max(p.propose(r.bucket), floor+1)
		if first+t.ask.Ticket.Block >= 1<<53 {
			return protocol.Answer{}, &protocol.Failure{Op: "lock", Name: r.spec.Name, Reason: protocol.Other, Err: errTokens}
		}
		out := t.round(ctx, first)
		switch out.verdict {
		case held:
			t.fate.held = true
			block := t.ask.Ticket.Block
			learn(&p.known[r.bucket], first+block-1)
			return protocol.Answer{Status: protocol.Held, Token: first, Block: block, Server: p.now()}, nil
		case tokenRefused:
			floor = out.largest
			if time.Now().Before(t.ask.Deadline) {
				continue
			}
			return protocol.Answer{}, r.failed("lock", out.noMajority("lock"))
		case split:
			// All is given back before the pause, or each would keep what it has from the others.
			close(t.fate.known)
			t.fate = newFate()
			if time.Since(began) < patience && p.pause(ctx, try*(1+out.contenders())) {
				continue
			}
		case failed:
			if out.err == nil {
				out.err = out.noMajority("lock")
			}
			return protocol.Answer{}, r.failed("lock", out.err)
		case given:
		case busy:
		}
		return out.busy(p.now(), t.ask.Join), nil
	}
}

var errTokens = errors.New("a node knows of a token near 2^53: it was tampered with")

// pause waits for a while that grows with the number of those who may want the same; false when something else ended it.
func (p *Protocol) pause(ctx context.Context, contenders int) bool {
	const each = 3 * time.Millisecond
	timer := time.NewTimer(rand.N(time.Duration(min(contenders, 64)) * each))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-p.closing:
	}
	return false
}

// ready meets the nodes, if there are fewer than a majority whose time and tokens are known: only then can a token be
// proposed that all accept.
func (r *resource) ready(ctx context.Context, deadline time.Time) error {
	p := r.p
	if err := ctx.Err(); err != nil {
		return protocol.EndOf(ctx)
	}
	var strangers []*node
	for _, n := range p.nodes {
		if _, ok := n.clock.NotAfter(deadline); !ok {
			strangers = append(strangers, n)
		}
	}
	missing := p.need - (len(p.nodes) - len(strangers))
	if missing <= 0 {
		return nil
	}
	type met struct {
		n *node
		facts
		err error
	}
	answers := make(chan met, len(strangers))
	for _, n := range strangers {
		p.run(func() {
			f, err := n.meet(deadline, "", "")
			answers <- met{n, f, err}
		})
	}
	said := make([]Node, len(p.nodes))
	for i := range said {
		said[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
	var late <-chan time.Time
	for left := len(strangers); missing > 0; {
		select {
		case m := <-answers:
			said[m.n.index] = p.said(m.n, m.facts, m.err == nil && p.counts(m.facts), m.err)
			if left--; m.err == nil {
				missing--
			}
			if missing > left && late == nil {
				late = time.After(courtesy)
			}
			if missing > left && left == 0 {
				return p.noMajority("lock", r.spec.Name, said)
			}
		case <-late:
			return p.noMajority("lock", r.spec.Name, said)
		case <-ctx.Done():
			return protocol.EndOf(ctx)
		}
	}
	return nil
}

// failed puts what is no answer of a node into a Failure.
func (r *resource) failed(op string, err error) error {
	var failure *protocol.Failure
	var foreign *protocol.Foreign
	var upgrade *protocol.Upgrade
	if errors.As(err, &failure) || errors.As(err, &foreign) || errors.As(err, &upgrade) {
		return err
	}
	return &protocol.Failure{Op: op, Name: r.spec.Name, Reason: protocol.NoAnswer, Err: err}
}

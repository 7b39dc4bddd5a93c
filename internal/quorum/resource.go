package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// format is the number of this wire format, the first byte of every mode and message.
const format = '3'

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
	spec.Life = cmp.Or(spec.Life, protocol.PlaceLife)
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
		payload:  payload(spec, p.channel, ""),
		life:     spec.Life.Milliseconds(),
		bucket:   bucket,
		field:    strconv.Itoa(bucket),
	}
}

func (p *Protocol) factsKey() any { return p.config.Prefix + ":{%quorum}" }

// withLength puts the length of a text before it.
func withLength(text string) string { return strconv.Itoa(len(text)) + ":" + text }

// waiter returns how a node remembers a ticket that waits, behind its id and mode.
func (r *resource) waiter(t protocol.Ticket) string {
	if t.NoMessages {
		return ""
	}
	return withLength(r.spec.Owner) + r.p.channel
}

// payloadOf returns what others read of a hold of a ticket.
func (r *resource) payloadOf(t protocol.Ticket) any {
	switch {
	case t.NoMessages:
		return payload(r.spec, "", t.Trace)
	case t.Trace != "":
		return payload(r.spec, r.p.channel, t.Trace)
	}
	return r.payload
}

// An acquisition is what all rounds of one Ask have in common.
type acquisition struct {
	r       *resource
	ask     protocol.Ask
	waited  time.Duration
	repair  bool // set again a hold that is ours, with its token
	outcome *outcome
}

// An outcome is that of the rounds since the last that was given up.
type outcome struct {
	known chan struct{} // closed when held is known
	held  bool
}

func newOutcome() *outcome { return &outcome{known: make(chan struct{})} }

// Ask implements protocol.Resource.
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	return r.acquire(ctx, &acquisition{r: r, ask: ask, outcome: newOutcome()})
}

// acquire asks in rounds. It asks again at once with a larger token if that is all that was
// missing, and after a pause if nobody has a majority. The pace of the Ask bounds its rounds. It
// returns before the deadline of the Ask, as soon as a majority has decided.
func (r *resource) acquire(ctx context.Context, t *acquisition) (answer protocol.Answer, err error) {
	p, began := r.p, time.Now()
	w := p.beginWait(t.ask.Ticket.ID)
	t.waited = began.Sub(w.since)
	defer func() { t.endAsk(ctx, w, err) }()
	if t.ask.Release != nil {
		p.markFreed(t.ask.Release.ID)
	}
	if err := r.ensureReady(ctx, t.ask.Deadline); err != nil {
		return protocol.Answer{}, r.asFailure("lock", err)
	}
	patience := t.ask.Deadline.Sub(began) / 2
	floor := int64(0)
	for try := 1; ; try++ {
		first := max(p.propose(r.bucket), floor+1)
		if first+t.ask.Ticket.Block >= 1<<53 {
			return protocol.Answer{}, &protocol.Failure{Op: "lock", Name: r.spec.Name, Reason: protocol.Other,
				Err: errTokens}
		}
		sent := time.Now()
		out := t.runRound(ctx, first)
		switch out.verdict {
		case held:
			return t.holdWith(first, sent), nil
		case tokenRefused:
			floor = out.largestToken()
			if t.pause(ctx, 0, t.ask.Deadline) {
				continue
			}
			return protocol.Answer{}, out.noMajority("lock", r.spec.Name)
		case split:
			t.giveUpRounds()
			if t.pause(ctx, pauseOf(try*(1+out.contenders())), began.Add(patience)) {
				continue
			}
		case failed:
			return protocol.Answer{}, out.failure()
		}
		return out.busyAnswer(t.ask.Join), nil
	}
}

// endAsk says what became of the rounds. A ticket that joined and does not hold waits.
func (t *acquisition) endAsk(ctx context.Context, w *wait, err error) {
	close(t.outcome.known)
	if t.outcome.held || !t.ask.Join {
		t.r.p.forgetWait(t.ask.Ticket.ID)
		return
	}
	asks := w.startWaiting(ctx, t.r, t.ask.Ticket)
	if err != nil && !isPassing(err) { // nobody goes on with it
		w.giveUp(asks)
	}
}

// holdWith notes that the ticket holds, with its tokens from first on, and returns the answer. No
// node granted it before the round was sent, and what is counted from the grant counts from there.
func (t *acquisition) holdWith(first int64, sent time.Time) protocol.Answer {
	t.outcome.held = true
	block := t.ask.Ticket.Block
	learn(&t.r.p.known[t.r.bucket], first+block-1)
	return protocol.Answer{Status: protocol.Held, Token: first, Block: block, Server: t.r.p.micros(sent)}
}

// giveUpRounds gives back what the rounds have won so far. That comes before the pause: otherwise
// each contender would keep what it has from the others.
func (t *acquisition) giveUpRounds() {
	close(t.outcome.known)
	t.outcome = newOutcome()
}

var errTokens = errors.New("a node knows of a token near 2^53: it was tampered with")

// pauseOf returns a pause that grows with the number of contenders.
func pauseOf(contenders int) time.Duration {
	const each = 3 * time.Millisecond
	return rand.N(time.Duration(min(contenders, 64)) * each)
}

// pause waits for so long before another round, or for longer if the pace of the Ask demands it. It
// is false if no round is to begin before a moment, or if something else ended it.
func (t *acquisition) pause(ctx context.Context, d time.Duration, before time.Time) bool {
	now, pace := time.Now(), t.ask.Pace
	if pace != nil && pace.Next().After(now.Add(d)) {
		d = pace.Next().Sub(now)
		now = pace.Next()
	}
	if !now.Before(before) || d > 0 && !protocol.Pause(ctx, d, t.r.p.closing) {
		return false
	}
	if pace != nil {
		pace.Sent(time.Now())
	}
	return true
}

// ensureReady meets the nodes if there are fewer than a majority whose time and tokens are known.
// Only with a majority can a token be proposed that all accept.
func (r *resource) ensureReady(ctx context.Context, deadline time.Time) error {
	p := r.p
	if ctx.Err() != nil {
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
	return r.meetAll(ctx, strangers, missing, deadline)
}

// meetAll meets the nodes until so many have answered.
func (r *resource) meetAll(ctx context.Context, nodes []*node, missing int, deadline time.Time) error {
	t := &tally{p: r.p}
	pending := len(nodes)
	ended := r.p.meetNodes(nodes, deadline).collect(ctx, func(a *reply) progress {
		t.add(a)
		if pending--; a.err == nil {
			missing--
		}
		switch {
		case missing <= 0:
			return stop
		case missing > pending:
			return goOnBriefly
		}
		return goOn
	})
	if ended == nil && missing > 0 {
		return t.noMajority("lock", r.spec.Name)
	}
	return ended
}

// asFailure returns a Failure of an error that is no answer of a node.
func (r *resource) asFailure(op string, err error) error {
	var failure *protocol.Failure
	var foreign *protocol.Foreign
	var upgrade *protocol.Upgrade
	var broken *protocol.Broken
	if errors.As(err, &failure) || errors.As(err, &foreign) || errors.As(err, &upgrade) || errors.As(err, &broken) {
		return err
	}
	return noAnswer(op, r.spec.Name, err)
}

// The reasons for which a quorum refuses semaphores, latches and what needs a queue.
const (
	noPermits = "no two sets of permits need meet at a node: three holders of one permit each may be on three" +
		" different majorities of five nodes, and no node sees more than two of them"
	noLatches = "a count that majorities agree on needs every node to know all of it," +
		" and a node that was away for one step does not"
)

var errNoQueue = fmt.Errorf("%w at a quorum", protocol.ErrNoQueue)

// BindLatch implements protocol.Protocol: there are no latches.
func (*Protocol) BindLatch(protocol.Spec) protocol.LatchResource { return nil }

// Resize implements protocol.Resource: there are no permits.
func (r *resource) Resize(context.Context, int64, time.Time) error {
	return &protocol.Failure{Op: "resize", Name: r.spec.Name, Reason: protocol.Unsupported, Err: errors.New(noPermits)}
}

// Evict implements protocol.Operators: there is no queue.
func (*Protocol) Evict(_ context.Context, name string, _ protocol.Kind, _ protocol.ID, _ string) (bool, error) {
	return false, &protocol.Failure{Op: "evict", Name: name, Reason: protocol.Unsupported, Err: errNoQueue}
}

// Tell implements protocol.Operators: no master knows who holds.
func (*Protocol) Tell(_ context.Context, name string, _ protocol.Kind, _ protocol.ID) (protocol.TellCount, error) {
	return protocol.TellCount{}, &protocol.Failure{Op: "tell", Name: name, Reason: protocol.Unsupported,
		Err: errNoQueue}
}

// ListenTicket implements protocol.Protocol: there are no kept places.
func (*Protocol) ListenTicket(context.Context, protocol.ID, protocol.Sink) (protocol.Listener, error) {
	return nil, &protocol.Failure{Op: "subscribe", Reason: protocol.Unsupported, Err: errNoQueue}
}

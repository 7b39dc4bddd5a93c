package quorum

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const (
	// inspectTimeout bounds an Inspect whose context has no earlier deadline.
	inspectTimeout = time.Second

	// toldByNode is how many holds a node tells at most. Nodes may know different holds, so they
	// tell more than what is asked for.
	toldByNode = 1000
)

var errSilent = errors.New("no answer in time")

// An inspectReply is what one node says of a name and of itself.
type inspectReply struct {
	reply
	seen bool          // some client has looked at its memory since the server was started
	lead time.Duration // how much more its clock shows than it can, if that is more than a leap
	told protocol.Inspection
}

// Inspect implements protocol.Operators. It asks all nodes at the same time, and waits for those
// that do not answer until the timeout. Nothing is written, so a node that is new, was restarted or
// had its clock set forward is told as it is: the next request that asks for something does what is
// to be done about it.
func (p *Protocol) Inspect(ctx context.Context, name string, page protocol.Page) (protocol.Inspection, error) {
	deadline := deadlineWithin(ctx, inspectTimeout)
	all := make([]*inspectReply, len(p.nodes))
	for i, n := range p.nodes {
		all[i] = &inspectReply{reply: reply{node: n, err: n.noAnswer("inspect", name, errSilent)}}
	}
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	answered := 0
	asked := askNodes(p, p.nodes, func(n *node) *inspectReply { return n.inspect(name, deadline) })
	_ = asked.collect(limited, func(a *inspectReply) progress {
		if all[a.node.index] = a; a.err == nil {
			answered++
		}
		return goOn
	})
	if late := isLate(ctx); late && answered == 0 || !late && ctx.Err() != nil { // what was answered in time is told
		return protocol.Inspection{}, noAnswer("inspect", name, protocol.EndOf(ctx))
	}
	t := p.tallyInspections(all)
	if answered == 0 {
		return protocol.Inspection{}, t.noMajority("inspect", name)
	}
	nodes := t.nodes()
	for i, a := range all {
		nodes[i].Inspection = a.told
	}
	out := agreeOn(nodes, p.need)
	out.Holds = out.Holds[:min(len(out.Holds), max(page.Holds, 0))]
	for i := range nodes {
		told := &nodes[i].Inspection
		told.Holds = told.Holds[:min(len(told.Holds), max(page.Holds, 0))]
	}
	out.Nodes = nodes
	return out, nil
}

// isLate reports whether the deadline of ctx is over.
func isLate(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && !time.Now().Before(end)
}

// tallyInspections decides which nodes count, once all have answered or are too late.
func (p *Protocol) tallyInspections(all []*inspectReply) *tally {
	setForward := wereSetForward(all)
	t := &tally{p: p}
	for _, a := range all {
		if a.err == nil {
			a.facts.ahead = setForward && a.lead > 0 || a.node.isRevoked(a.facts.born)
			a.counts, a.why = p.judgeInspection(a)
		}
		t.add(&a.reply)
	}
	return t
}

// wereSetForward reports whether the nodes whose clocks seem to be set forward are taken for that.
// If more of them are ahead by the same than in time, it is our own clock that stood still
// (clockcheck.go).
func wereSetForward(all []*inspectReply) bool {
	var leads []time.Duration
	inTime := 0
	for _, reply := range all {
		switch {
		case reply.err != nil, reply.facts.same != nil:
		case reply.lead > 0:
			leads = append(leads, reply.lead)
		default:
			inTime++
		}
	}
	return inTime >= mostByOneStop(leads)
}

// isRevoked reports whether a memory of the node has ended holds early.
func (n *node) isRevoked(born int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return born != 0 && born == n.revoked
}

// judgeInspection reports whether a node counts, and why not.
func (p *Protocol) judgeInspection(reply *inspectReply) (counts bool, why string) {
	f := reply.facts
	switch {
	case f.same != nil:
		return false, p.whyNot(f)
	case p.config.Trust && !f.ahead:
		return true, ""
	case f.born == 0:
		return false, "nobody has used it yet, so its memory has not begun"
	case !reply.seen && !f.ahead:
		return false, "it was restarted, so it may have forgotten a hold; its memory begins anew with the next request"
	case p.counts(f):
		return true, ""
	}
	return false, p.whyNot(f)
}

func (n *node) inspect(name string, deadline time.Time) *inspectReply {
	p := n.p
	out, sent := &inspectReply{reply: reply{node: n}}, time.Now()
	state := p.config.Prefix + ":{%quorum}:" + name
	text, err := n.askScript(&p.scripts.inspect, name, deadline, []any{nil, nil, 2, state, p.factsKey(), toldByNode})
	switch {
	case err != nil:
		out.err = n.failure("inspect", name, err)
	case !out.read(p.config.Prefix, text):
		out.err = n.unreadable("inspect", name, text)
	case out.facts.born != 0:
		out.lead = n.clock.lead(out.facts.now, out.facts.born, sent, time.Now(), leap)
	}
	if foreign := out.told.Foreign; foreign != nil {
		foreign.Name, foreign.Node, foreign.Key = name, nodeName(n.index), state
	}
	return out
}

// failure makes a Failure of what stands in the way of the facts.
func (n *node) failure(op, name string, err error) error {
	var foreign *protocol.Foreign
	if !errors.As(err, &foreign) {
		return err
	}
	return &protocol.Failure{Op: op, Name: name, Node: nodeName(n.index), Reason: protocol.ForeignKey,
		Err: errors.New(foreign.Text())}
}

// read takes a reply of inspect.lua apart; false if it is none of ours.
func (a *inspectReply) read(prefix, text string) bool {
	f, rest, ok := readHead(text)
	if !ok || text[0] != 'I' || rest == "" {
		return false
	}
	a.facts, a.seen = f, rest[0] == '1'
	longest, rest, found1 := strings.Cut(rest[1:], "|")
	total, rest, found2 := strings.Cut(rest, "|")
	long, ok1 := wire.Number(longest)
	count, ok2 := wire.Number(total)
	is, rest, ok3 := countedText(rest)
	if !found1 || !found2 || !ok1 || !ok2 || !ok3 || count < 0 {
		return false
	}
	learn(&a.node.p.longest, long)
	a.node.p.identifyServer(a.node, &a.facts)
	a.told = protocol.Inspection{Server: f.now, HoldCount: int(count)}
	if is != "" {
		a.told.Foreign = &protocol.Foreign{Op: "inspect", Found: is, Want: "what a quorum keeps of a lock"}
	}
	for rest != "" {
		var field, value string
		if field, value, rest, ok = fieldAndValue(rest); !ok {
			return false
		}
		hold, kind, ok := holdOf(prefix, field, value, f.now)
		if !ok {
			return false
		}
		a.told.Kind = kind
		a.told.Holds = append(a.told.Holds, hold)
	}
	return true
}

// countedText reads a length, ":" and so many bytes, and returns what is behind them.
func countedText(text string) (what, rest string, ok bool) {
	size, rest, found := strings.Cut(text, ":")
	n, number := wire.Number(size)
	if !found || !number || n < 0 || n > int64(len(rest)) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

// fieldAndValue reads two lengths, a field and a value, and returns what is behind them.
func fieldAndValue(text string) (field, value, rest string, ok bool) {
	first, text, found := strings.Cut(text, ":")
	n, ok1 := wire.Number(first)
	size, text, found2 := strings.Cut(text, ":")
	m, ok2 := wire.Number(size)
	if !found || !found2 || !ok1 || !ok2 || n < 0 || m < 0 || n > int64(len(text)) || m > int64(len(text))-n {
		return "", "", "", false
	}
	return text[:n], text[n : n+m], text[n+m:], true
}

// holdOf reads a field of the state of a name, at a time of its node.
func holdOf(prefix, field, value string, now int64) (hold protocol.Hold, kind protocol.Kind, ok bool) {
	if len(value) < payloadAt {
		return hold, 0, false
	}
	ends, ok1 := wire.Number(value[endAt:firstAt])
	first, ok2 := wire.Number(value[firstAt:lastAt])
	last, ok3 := wire.Number(value[lastAt:roundAt])
	p, ok4 := payloadOf(value[payloadAt:])
	if !ok1 || !ok2 || !ok3 || !ok4 || ends < 0 || ends > 1<<52 {
		return hold, 0, false
	}
	hold = protocol.Hold{
		ID: protocol.ID(field), State: protocol.HoldTaken, Shared: value[2] == 's', Token: first,
		Since: sinceOf(first, now),
		Until: ends * 1000, TTL: p.ttl, Fixed: p.fixed, Process: strings.TrimPrefix(p.channel, prefix+":{%quorum}@"),
	}
	if first > 0 && last >= first {
		hold.Block = last - first + 1
	}
	id, remains := strings.CutPrefix(field, "-")
	switch {
	case onlyRemainders(hold.ID):
		hold.State = protocol.HoldMinHold
	case remains && len(id) == idSize:
		hold.ID, hold.State, hold.By = protocol.ID(id), protocol.HoldBroken, extra(p.extras, "by")
	default:
		hold.Renewed = min(hold.Until-p.ttl.Microseconds(), now)
	}
	hold.Party = partyOf(hold.ID, value[payloadAt:])
	return hold, protocol.Kind(value[1]), true
}

// sinceOf returns when a hold with this token was granted: mostly the token. A token that is ahead
// of the time says nothing of it; clocks that differ a little may make it so.
func sinceOf(token, now int64) int64 {
	if token > now+time.Second.Microseconds() {
		return 0
	}
	return min(token, now)
}

// agreeOn returns the verdict: the holds that a majority knows, of the nodes that count. Nodes that
// do not count or do not answer may know a hold. So a hold is told as well if a majority knows it
// with them.
func agreeOn(nodes []protocol.Node, need int) protocol.Inspection {
	v := holdCount{need: need, uncounted: len(nodes), of: map[protocol.ID][]nodeHold{}}
	var clocks []int64
	for i := range nodes {
		if nodes[i].Err == nil {
			clocks = append(clocks, nodes[i].Inspection.Server)
		}
		v.add(&nodes[i])
	}
	slices.Sort(clocks)
	out := protocol.Inspection{Server: clocks[len(clocks)/2]}
	if v.foreign > len(nodes)-need {
		out.Foreign = v.foreigner
		return out
	}
	for id := range v.of {
		if known := len(v.of[id]); known+v.uncounted >= need {
			out.Holds = append(out.Holds, v.hold(v.of[id], out.Server))
		}
	}
	slices.SortFunc(out.Holds, compareHolds)
	out.HoldCount = max(len(out.Holds), v.hiddenCount())
	if len(out.Holds) > 0 {
		out.Kind = v.kind()
	}
	return out
}

package quorum

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A tally is the replies to one question so far. It counts them and decides nothing: each question
// has a rule of its own. Only one goroutine uses it.
type tally struct {
	p       *Protocol
	replies []*reply
}

func (t *tally) add(a *reply) { t.replies = append(t.replies, a) }

// collect adds the replies to a question, as they come, until decided says that they decide it, or
// all have come. The error is that of ctx, if ctx ended before.
func (t *tally) collect(ctx context.Context, asked *fanOut[*reply], decided func() bool) error {
	return asked.collect(ctx, func(a *reply) progress {
		if t.add(a); decided() {
			return stop
		}
		return goOn
	})
}

// collectMajority waits until a majority of nodes has done what was asked, or none can. The error
// is a *protocol.Failure.
func (p *Protocol) collectMajority(ctx context.Context, asked *fanOut[*reply], op, name string) error {
	t := &tally{p: p}
	ended := t.collect(ctx, asked, func() bool {
		return t.counting() >= p.need || len(t.replies)-t.counting() > p.spare()
	})
	switch {
	case t.counting() >= p.need:
		return nil
	case ended != nil:
		return noAnswer(op, name, ended)
	}
	return t.noMajority(op, name)
}

// pending returns how many nodes have not replied.
func (t *tally) pending() int { return len(t.p.nodes) - len(t.replies) }

// count returns how many replies are of a kind, also of nodes that do not count.
func (t *tally) count(is func(*reply) bool) (n int) {
	for _, a := range t.replies {
		if is(a) {
			n++
		}
	}
	return n
}

// answers returns how many nodes answered with one of these letters, also nodes that do not count.
func (t *tally) answers(letters string) int {
	return t.count(func(a *reply) bool { return a.hasStatus(letters) })
}

// votes returns how many nodes that count answered with one of these letters.
func (t *tally) votes(letters string) int {
	return t.count(func(a *reply) bool { return a.counts && a.hasStatus(letters) })
}

// counting returns how many nodes that count have answered.
func (t *tally) counting() int {
	return t.count(func(a *reply) bool { return a.counts })
}

// foreign returns how many nodes have a key of another kind or format, and the error of one.
func (t *tally) foreign() (n int, err error) {
	for _, a := range t.replies {
		var foreign *protocol.Foreign
		if errors.As(a.err, &foreign) {
			n, err = n+1, foreign
		}
	}
	return n, err
}

// most returns how many replies have the key that most of them have, and the reply that made them
// the most. Replies without a key are left out.
func most[K comparable](t *tally, key func(*reply) (K, bool)) (n int, of *reply) {
	counts := map[K]int{}
	for _, a := range t.replies {
		k, ok := key(a)
		if !ok {
			continue
		}
		if counts[k]++; counts[k] > n {
			n, of = counts[k], a
		}
	}
	return n, of
}

// nodes returns what each node said, in their order.
func (t *tally) nodes() []protocol.Node {
	out := make([]protocol.Node, len(t.p.nodes))
	for i := range out {
		out[i] = protocol.Node{Name: nodeName(i), Err: errNotYet}
	}
	for _, a := range t.replies {
		out[a.node.index] = t.p.describe(a)
	}
	return out
}

// describe returns what a node said, for people.
func (p *Protocol) describe(a *reply) protocol.Node {
	out := protocol.Node{Name: nodeName(a.node.index), Counts: a.counts, Err: a.err}
	switch {
	case a.counts:
		out.Answer = a.text()
	case a.err == nil:
		out.Why, out.SameAs, out.Age = cmp.Or(a.why, p.whyNot(a.facts)), a.facts.sameAs(), a.facts.age()
	}
	return out
}

// A fanOut is one question to several nodes, on its way. Each node gives one reply. All questions
// to more than one node are sent and collected here. One goroutine collects.
type fanOut[R any] struct {
	replies chan R // with room for all: no goroutine waits for a reader that has left
	pending int    // replies that are not collected yet
}

// A progress says how a collection goes on after a reply.
type progress int

const (
	goOn        progress = iota
	goOnBriefly          // the rest is of use only if it comes within lateReplies
	stop
)

// lateReplies is how long the nodes that live are given to say so, once it is clear that there is
// no majority.
const lateReplies = 50 * time.Millisecond

// askNodes asks nodes at the same time. The question must end by itself.
func askNodes[R any](p *Protocol, nodes []*node, ask func(*node) R) *fanOut[R] {
	return prepareAndAsk(p, nodes, func(n *node) func() R { return func() R { return ask(n) } })
}

// prepareAndAsk is askNodes for a question that is to be noted at the node before the caller goes
// on: prepare runs in the caller's goroutine, and what it returns in one for the node.
func prepareAndAsk[R any](p *Protocol, nodes []*node, prepare func(*node) (ask func() R)) *fanOut[R] {
	f := &fanOut[R]{replies: make(chan R, len(nodes)), pending: len(nodes)}
	for _, n := range nodes {
		ask := prepare(n)
		p.startWorker(func() { f.replies <- ask() })
	}
	return f
}

// collect hands the replies to take, as they come, until take says stop or all have come. Take may
// be called again for the rest, by another collect or collectRest. The error is that of ctx, if
// ctx ended before.
func (f *fanOut[R]) collect(ctx context.Context, take func(R) progress) error {
	var late <-chan time.Time
	for f.pending > 0 {
		select {
		case reply := <-f.replies:
			f.pending--
			switch take(reply) {
			case stop:
				return nil
			case goOnBriefly:
				if late == nil {
					late = time.After(lateReplies)
				}
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return protocol.EndOf(ctx)
		}
	}
	return nil
}

// collectRest hands the replies that are left to take, however long they take.
func (f *fanOut[R]) collectRest(take func(R)) {
	for ; f.pending > 0; f.pending-- {
		take(<-f.replies)
	}
}

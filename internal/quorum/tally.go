package quorum

import (
	"cmp"
	"context"
	"errors"

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

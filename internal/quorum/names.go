package quorum

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const (
	// listTimeout bounds each request of a listing.
	listTimeout = 5 * time.Second

	// listPage is for how many names at once a node is asked whether it knows them.
	listPage = 200
)

var list = wire.Script{Op: "list"} // a plain command

// Names implements protocol.Operators. The nodes are read one after the other. A node tells a name
// unless one before it has told it: one that has known the name since it was read. A name that was
// asked for or renewed since then may therefore come twice. A node that fails is left out from then
// on. If fewer fail than a majority needs, they hide no hold: a majority knows each. So the error
// names those alone whose failure does not pass by itself.
func (p *Protocol) Names(ctx context.Context, pattern string) iter.Seq2[protocol.FoundName, error] {
	return func(yield func(protocol.FoundName, error) bool) {
		l := &listing{p: p, ctx: ctx, pattern: protocol.EscapeGlob(p.statePrefix()) + pattern,
			began: make([]int64, len(p.nodes)), failed: make([]error, len(p.nodes))}
		for i := range p.nodes {
			if !l.listNode(i, yield) {
				return
			}
		}
		if err := l.failure(); err != nil {
			yield(protocol.FoundName{}, err)
		}
	}
}

// statePrefix returns how the keys of names begin.
func (p *Protocol) statePrefix() string { return p.config.Prefix + ":{%quorum}:" }

// A listing is one reading of all names.
type listing struct {
	p       *Protocol
	ctx     context.Context
	pattern string
	began   []int64 // when the reading of each node began, by its own clock, in milliseconds
	failed  []error // of each node; nil: it answers
}

// listNode tells the names of a node that no node before it has told; false if the caller has had
// enough.
func (l *listing) listNode(i int, yield func(protocol.FoundName, error) bool) bool {
	if l.failed[i] = l.askTime(i); l.failed[i] != nil {
		return true
	}
	var keys []string
	for key, err := range wire.Scan(l.ctx, l.p.nodes[i].store, l.pattern, listTimeout) {
		if err != nil {
			l.failed[i] = wire.At(nodeName(i), err)
			break
		}
		if keys = append(keys, key); len(keys) == listPage {
			if !l.listNew(i, keys, yield) {
				return false
			}
			keys = keys[:0]
		}
	}
	return l.listNew(i, keys, yield)
}

// askTime asks a node for the time.
func (l *listing) askTime(i int) error {
	key, _ := l.p.factsKey().(string)
	reply := wire.Ask(l.ctx, l.p.nodes[i].store, wire.Request{Op: list.Op, Args: []any{"TIME"}, Key: key}, listTimeout)
	if err := list.Failure("", reply, nil); err != nil {
		return wire.At(nodeName(i), err)
	}
	now, ok := wire.ServerTime(reply.Value)
	if !ok {
		return l.p.nodes[i].unreadable("list", "", reply.Value)
	}
	l.began[i] = now / 1000
	return nil
}

// listNew tells those of the keys of a node that no node before it has told; false as listNode.
func (l *listing) listNew(i int, keys []string, yield func(protocol.FoundName, error) bool) bool {
	var err error
	for before := range i {
		if keys, err = l.dropKnownBy(before, keys); err != nil {
			l.failed[before] = err
		}
	}
	for _, key := range keys {
		name, ok := strings.CutPrefix(key, l.p.statePrefix())
		if ok && !yield(protocol.FoundName{Name: name, Node: nodeName(i)}, nil) {
			return false
		}
	}
	return true
}

// A knownAnswer is a node's answer to known.lua.
type knownAnswer struct {
	text string
	err  error
}

// dropKnownBy returns the keys that a node has not told, as far as is known. It returns all if the
// node fails, or has failed before.
func (l *listing) dropKnownBy(i int, keys []string) ([]string, error) {
	if len(keys) == 0 || l.failed[i] != nil {
		return keys, l.failed[i]
	}
	words := make([]any, 3, 4+len(keys))
	words[2] = len(keys)
	for _, key := range keys {
		words = append(words, key)
	}
	n, deadline := l.p.nodes[i], deadlineWithin(l.ctx, listTimeout)
	answer, ok := wire.Await(l.ctx, func() (a knownAnswer) {
		a.text, a.err = n.askScript(&l.p.scripts.known, "", deadline, append(words, l.began[i]))
		return a
	})
	text, err := answer.text, answer.err
	if !ok {
		err = wire.At(nodeName(i), list.Failure("", wire.Reply{Err: protocol.EndOf(l.ctx)}, nil))
	}
	if err == nil && len(text) != len(keys) {
		err = l.p.nodes[i].unreadable("list", "", text)
	}
	if err != nil {
		return keys, err
	}
	var untold []string
	for at, key := range keys {
		if text[at] != '1' {
			untold = append(untold, key)
		}
	}
	return untold, nil
}

// failure returns what stood in the way.
func (l *listing) failure() error {
	if l.ctx.Err() != nil {
		return noAnswer("list", "", protocol.EndOf(l.ctx))
	}
	t, failed := &tally{p: l.p}, 0
	var nodes []string // of those whose failure does not pass
	var causes []error
	out := protocol.Failure{Op: "list"}
	for i, err := range l.failed {
		t.add(&reply{node: l.p.nodes[i], counts: err == nil, err: err})
		var failure *protocol.Failure
		if !errors.As(err, &failure) {
			continue
		}
		failed++
		if !failure.Reason.Passing() {
			out.Reason = failure.Reason
			nodes, causes = append(nodes, nodeName(i)), append(causes, failure.Err)
		}
	}
	switch {
	case failed > l.p.spare():
		return t.noMajority("list", "")
	case len(nodes) == 0:
		return nil
	}
	out.Node, out.Err = strings.Join(nodes, ", "), errors.Join(causes...)
	return &out
}

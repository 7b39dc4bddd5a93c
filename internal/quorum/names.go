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

	// listPage is for how many keys at once a node is asked whether it knows them.
	listPage = 500
)

var list = wire.Script{Op: "list"} // a plain command

// Names implements protocol.Operators. The nodes are read one after the other. A node tells a name
// unless one before it knows the name: that one has told it. If the one before learned of the name
// only after it was read, neither tells it. A node that fails is left out from then on, and named
// in the error.
func (p *Protocol) Names(ctx context.Context, pattern string) iter.Seq2[protocol.Found, error] {
	return func(yield func(protocol.Found, error) bool) {
		l := &listing{p: p, ctx: ctx, pattern: protocol.EscapeGlob(p.statePrefix()) + pattern, failed: make([]error, len(p.nodes))}
		for i := range p.nodes {
			if !l.tell(i, yield) {
				return
			}
		}
		if err := l.err(); err != nil {
			yield(protocol.Found{}, err)
		}
	}
}

// statePrefix is how the keys of names begin.
func (p *Protocol) statePrefix() string { return p.config.Prefix + ":{%quorum}:" }

// A listing is one reading of all names.
type listing struct {
	p       *Protocol
	ctx     context.Context
	pattern string
	failed  []error // of each node; nil: it answers
}

// tell tells the names of a node that no node before it knows; false if the caller has had enough.
func (l *listing) tell(i int, yield func(protocol.Found, error) bool) bool {
	var keys []string
	for key, err := range wire.Scan(l.ctx, l.p.nodes[i].store, l.pattern, listTimeout) {
		if err != nil {
			l.failed[i] = wire.At(nodeName(i), err)
			break
		}
		if keys = append(keys, key); len(keys) == listPage {
			if !l.tellNew(i, keys, yield) {
				return false
			}
			keys = keys[:0]
		}
	}
	return l.tellNew(i, keys, yield)
}

// tellNew tells those of the keys of a node that no node before it knows; false as tell.
func (l *listing) tellNew(i int, keys []string, yield func(protocol.Found, error) bool) bool {
	var err error
	for before := range i {
		if keys, err = l.unknownTo(before, keys); err != nil {
			l.failed[before] = err
		}
	}
	for _, key := range keys {
		name, ok := strings.CutPrefix(key, l.p.statePrefix())
		if ok && !yield(protocol.Found{Name: name, Node: nodeName(i)}, nil) {
			return false
		}
	}
	return true
}

// do sends commands to a node at once.
func (l *listing) do(i int, commands [][]any) []wire.Reply {
	key, _ := l.p.factsKey().(string)
	requests := make([]wire.Request, len(commands))
	for at, args := range commands {
		requests[at] = wire.Request{Args: args, Key: key}
	}
	ctx, cancel := context.WithTimeout(l.ctx, listTimeout)
	defer cancel()
	return l.p.nodes[i].store.Do(ctx, requests)
}

// unknownTo returns the keys that a node does not know. It returns all if the node fails, or has
// failed before.
func (l *listing) unknownTo(i int, keys []string) ([]string, error) {
	if len(keys) == 0 || l.failed[i] != nil {
		return keys, l.failed[i]
	}
	commands := make([][]any, len(keys))
	for at, key := range keys {
		commands[at] = []any{"HLEN", key}
	}
	var unknown []string
	for at, reply := range l.do(i, commands) {
		var foreign *protocol.Foreign
		switch err := list.Failure("", reply, []any{keys[at]}); {
		case errors.As(err, &foreign): // it has told that
		case err != nil:
			return keys, wire.At(nodeName(i), err)
		case reply.Value == int64(0):
			unknown = append(unknown, keys[at])
		}
	}
	return unknown, nil
}

// err is what stood in the way, of all nodes.
func (l *listing) err() error {
	if l.ctx.Err() != nil {
		return &protocol.Failure{Op: "list", Reason: protocol.NoAnswer, Err: protocol.EndOf(l.ctx)}
	}
	answers := l.p.noAnswers()
	var nodes []string
	var causes []error
	out := protocol.Failure{Op: "list"}
	for i, err := range l.failed {
		answers[i].Counts, answers[i].Err = true, err
		var failure *protocol.Failure
		if errors.As(err, &failure) {
			out.Reason = failure.Reason
			nodes, causes = append(nodes, nodeName(i)), append(causes, failure.Err)
		}
	}
	switch {
	case len(nodes) == 0:
		return nil
	case len(nodes) > len(l.p.nodes)-l.p.need:
		return l.p.noMajority("list", "", answers)
	}
	out.Node, out.Err = strings.Join(nodes, ", "), errors.Join(causes...)
	return &out
}

package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

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

package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Listen implements protocol.Protocol: a subscription a node, to the channel of this client. It returns when a majority
// listens; the others follow, and are tried again while they fail.
func (p *Protocol) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listening, error) {
	until, cancel := context.WithCancel(context.Background())
	l := &listening{p: p, sink: sink, cancel: cancel}
	tries := make(chan opened, len(p.nodes))
	for _, n := range p.nodes {
		l.all.Add(1)
		p.run(func() {
			defer l.all.Done()
			l.keep(until, n, tries)
		})
	}
	good, failures := 0, make([]Node, len(p.nodes))
	for i := range failures {
		failures[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
	for bad := 0; good < p.need; {
		select {
		case try := <-tries:
			failures[try.node].Counts, failures[try.node].Err = true, try.err
			if try.err == nil {
				good++
				continue
			}
			if bad++; bad > len(p.nodes)-p.need {
				l.Close()
				return nil, p.noMajority("subscribe", p.channel, failures)
			}
		case <-ctx.Done():
			l.Close()
			return nil, &protocol.Failure{Op: "subscribe", Name: p.channel, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
		}
	}
	return l, nil
}

// A listening is the subscriptions at all nodes.
type listening struct {
	p      *Protocol
	sink   protocol.Sink
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// Hear implements protocol.Listening: one channel serves all names.
func (l *listening) Hear(context.Context, protocol.Watched) (time.Time, error) {
	return time.Time{}, nil
}

// Close implements protocol.Listening.
func (l *listening) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.all.Wait()
}

// An opened is the outcome of the first try at a node.
type opened struct {
	node int
	err  error
}

// keep subscribes at one node, again while it fails, and tells the outcome of the first try.
func (l *listening) keep(until context.Context, n *node, first chan<- opened) {
	for again := false; ; again = true {
		ctx, cancel := context.WithTimeout(until, 2*time.Second)
		subscription, err := l.open(ctx, n)
		cancel()
		if !again {
			first <- opened{n.index, err}
		}
		if err == nil {
			if again {
				l.Gap()
			}
			<-until.Done()
			_ = subscription.Close()
			return
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-timer.C:
		case <-until.Done():
			timer.Stop()
			return
		}
	}
}

func (l *listening) open(ctx context.Context, n *node) (native.Subscription, error) {
	subscription, err := n.server.Subscribe(ctx, ear{l, n.index})
	if err == nil {
		if err = subscription.Add(ctx, l.p.channel); err == nil {
			return subscription, nil
		}
		_ = subscription.Close()
	}
	return nil, n.named(native.Deafness(l.p.channel, err))
}

// Gap tells the sink that messages may have been missed.
func (l *listening) Gap() {
	if !l.over() {
		l.sink.Gap()
	}
}

func (l *listening) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// An ear reads the messages of one node. Anything that is none of ours is dropped: messages are hints.
type ear struct {
	*listening
	node int
}

// Message implements native.Sink.
func (e ear) Message(channel, text string) {
	if channel != e.p.channel || len(text) < 1+idSize || text[0] != 'N' || e.over() {
		return
	}
	after, ok := native.Number(text[1+idSize:])
	if !ok || after < 0 {
		return
	}
	id := protocol.ID(text[1 : 1+idSize])
	if more, ok := e.p.nudged(id, e.node); ok {
		e.sink.Nudge(id, more+time.Duration(after)*time.Millisecond)
	}
}

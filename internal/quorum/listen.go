package quorum

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Listen implements protocol.Protocol: a subscription a node, to the channel of this client. It
// returns when a majority is subscribed. The others follow, and are tried again while they fail.
func (p *Protocol) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listener, error) {
	until, cancel := context.WithCancel(context.Background())
	l := &listener{p: p, sink: sink, ending: until.Done(), cancel: cancel}
	tries := &fanOut[*reply]{replies: make(chan *reply, len(p.nodes)), pending: len(p.nodes)}
	for _, n := range p.nodes {
		l.all.Add(1)
		p.startWorker(func() {
			defer l.all.Done()
			// after the first try
			wire.Subscribe(until, n.store, p.channel, messageReader{l, n.index}, func(err error) {
				tries.replies <- &reply{node: n, counts: err == nil, err: wire.At(nodeName(n.index), err)}
			})
		})
	}
	if err := p.collectMajority(ctx, tries, "subscribe", p.channel); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// A listener is the subscriptions at all nodes.
type listener struct {
	p      *Protocol
	sink   protocol.Sink
	ending <-chan struct{} // closed by Close
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	brokenAt map[protocol.ID]uint16 // the nodes that said of a hold that it was broken, a moment ago
}

// Hear implements protocol.Listener: one channel serves all names.
func (l *listener) Hear(context.Context, protocol.Subject) (time.Time, error) {
	return time.Time{}, nil
}

// Close implements protocol.Listener.
func (l *listener) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.all.Wait()
}

// Gap tells the sink that messages may have been missed.
func (l *listener) Gap() {
	if !l.isClosed() {
		l.sink.Gap()
	}
}

func (l *listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// A messageReader reads the messages of one node: the format number, what is said, the id of the
// ticket that it is said to, and the rest. It drops everything that is none of ours: messages are
// hints.
type messageReader struct {
	*listener
	node int
}

// Message implements wire.Sink.
func (e messageReader) Message(channel, text string) {
	const head = 2
	if channel != e.p.channel || len(text) < head+idSize || text[0] != format || e.isClosed() {
		return
	}
	id, rest := protocol.ID(text[head:head+idSize]), text[head+idSize:]
	switch text[1] {
	case 'R':
		e.noteBroken(id, e.node)
	case 'N':
		after, ok := wire.Number(rest)
		if !ok || after < 0 {
			return
		}
		if more, ok := e.p.noteNudge(id, e.node); ok {
			e.sink.Nudge(id, more+time.Duration(after)*time.Millisecond)
		}
	}
}

// noteBroken takes a node's word that a hold was broken there. Its holder asks when a majority says
// so, and a little after the first message. The messages of others may be lost, and a message that
// came while it asked may have told it nothing.
func (l *listener) noteBroken(id protocol.ID, node int) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	if l.brokenAt == nil {
		l.brokenAt = make(map[protocol.ID]uint16)
	}
	before := l.brokenAt[id]
	after := before | 1<<node
	l.brokenAt[id] = after
	if before == 0 {
		l.all.Go(func() { l.reportBrokenLater(id) })
	}
	l.mu.Unlock()
	if bits.OnesCount16(before) < l.p.need && bits.OnesCount16(after) >= l.p.need {
		l.sink.Broken(id)
	}
}

func (l *listener) reportBrokenLater(id protocol.ID) {
	timer := time.NewTimer(brokenAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ending:
		return
	}
	l.mu.Lock()
	delete(l.brokenAt, id)
	l.mu.Unlock()
	l.sink.Broken(id)
}

// brokenAfter is how long nodes have to say what a majority of them says of a hold.
const brokenAfter = 100 * time.Millisecond

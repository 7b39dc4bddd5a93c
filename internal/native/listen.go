package native

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

// Listen implements protocol.Protocol: one subscription a client, to the channel of its own. Where channels are sharded it
// has none at first.
func (p *Protocol) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listening, error) {
	subscription, err := p.server.Subscribe(ctx, ear{p.suffix(), sink})
	if err != nil {
		return nil, p.deafness(err)
	}
	l := &listening{p: p, subscription: subscription}
	if mark := p.marked.Load(); mark != nil && *mark == sharded {
		l.slots = make(map[int]*slotChannel)
		return l, nil
	}
	if err := subscription.Add(ctx, p.channel); err != nil {
		_ = subscription.Close()
		return nil, p.deafness(err)
	}
	return l, nil
}

// deafness reads why there is no subscription, as requests are read.
func (p *Protocol) deafness(err error) error {
	failure := &protocol.Failure{Op: "subscribe", Name: p.channel, Node: p.config.Node, Reason: protocol.Unreachable, Err: err}
	if reason := reasonOf(err.Error()); reason != protocol.Other {
		failure.Reason = reason
	}
	return failure
}

// unheard is how long a channel of a slot stays after somebody last waited there.
const unheard = 30 * time.Second

type listening struct {
	p            *Protocol
	subscription store.Subscription

	mu    sync.Mutex
	slots map[int]*slotChannel // nil: one channel serves all names
}

// A slotChannel is the sharded channel of a slot.
type slotChannel struct {
	name   string
	wanted time.Time     // when somebody last was to wait
	added  chan struct{} // closed when the server has confirmed it, or refused
	since  time.Time
	err    error
}

// Hear implements protocol.Listening.
func (l *listening) Hear(ctx context.Context, about protocol.Watched) (time.Time, error) {
	if l.slots == nil {
		return time.Time{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.p.config.Timeout)
	defer cancel()
	k := keysOfWatched(about)
	l.mu.Lock()
	c, now := l.slots[k.slot], time.Now()
	fresh := c == nil
	if fresh {
		c = &slotChannel{name: l.p.channelFor(k)[1:], added: make(chan struct{})}
		l.slots[k.slot] = c
	}
	c.wanted = now
	var idle []string
	for slot, other := range l.slots {
		if now.Sub(other.wanted) > unheard {
			delete(l.slots, slot)
			idle = append(idle, other.name)
		}
	}
	l.mu.Unlock()
	for _, name := range idle {
		_ = l.subscription.Remove(ctx, name)
	}
	if fresh {
		go l.add(k.slot, c)
	}
	select {
	case <-c.added:
		return c.since, c.err
	case <-ctx.Done():
		return time.Time{}, protocol.EndOf(ctx)
	}
}

// add subscribes a channel on behalf of all who want it: none of them can cancel it for the others.
func (l *listening) add(slot int, c *slotChannel) {
	ctx, cancel := context.WithTimeout(context.Background(), l.p.config.Timeout)
	defer cancel()
	if err := l.subscription.Add(ctx, c.name); err != nil {
		c.err = l.p.deafness(err)
		l.mu.Lock()
		delete(l.slots, slot) // the next one tries again
		l.mu.Unlock()
	}
	c.since = time.Now()
	close(c.added)
}

func keysOfWatched(about protocol.Watched) *keys {
	if l, ok := about.(latch); ok {
		return &l.keys
	}
	return &about.(*resource).keys
}

// Close implements protocol.Listening.
func (l *listening) Close() { _ = l.subscription.Close() }

// An ear reads messages: the format number, what is said, the id of the ticket that it is said to, and the rest. Anything that is
// none of ours is dropped: messages are hints.
type ear struct {
	suffix string // of our channels
	sink   protocol.Sink
}

func (e ear) Gap() { e.sink.Gap() }

func (e ear) Message(channel, text string) {
	const head, id = 2, 22
	if !strings.HasSuffix(channel, e.suffix) || len(text) < head+id || text[0] != format {
		return
	}
	ticket, rest := protocol.ID(text[head:head+id]), text[head+id:]
	switch text[1] {
	case 'R':
		e.sink.Replaced(ticket)
	case 'N':
		if after, ok := span(rest); ok {
			e.sink.Nudge(ticket, after)
		}
	case 'G':
		fields := strings.Split(rest, "|")
		if len(fields) != 3 || len(fields[0]) < 17 {
			return
		}
		token, ok1 := number(fields[0][:16])
		block, ok2 := number(fields[0][16:])
		claim, ok3 := span(fields[1])
		at, ok4 := number(fields[2])
		if ok1 && ok2 && ok3 && ok4 && token > 0 && block > 0 && claim > 0 {
			e.sink.Granted(protocol.Grant{ID: ticket, Token: token, Block: block, At: at, Claim: claim})
		}
	}
}

// span reads milliseconds; false when they are none, or more than a duration can be.
func span(text string) (time.Duration, bool) {
	n, ok := number(text)
	return time.Duration(n) * time.Millisecond, ok && n >= 0 && n <= math.MaxInt64/int64(time.Millisecond)
}

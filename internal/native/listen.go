package native

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Listen implements protocol.Protocol: one subscription a client, to the channel of its own. Where
// channels are sharded it has no channel at first.
func (p *Protocol) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listener, error) {
	return p.listen(ctx, p.config.Process, sink)
}

// ListenTicket implements protocol.Protocol: one subscription a wait. Its end, and nothing else,
// tells the server that nobody listens.
func (p *Protocol) ListenTicket(ctx context.Context, id protocol.ID, sink protocol.Sink) (protocol.Listener, error) {
	return p.listen(ctx, ticketProcess(id), sink)
}

func (p *Protocol) listen(ctx context.Context, process string, sink protocol.Sink) (protocol.Listener, error) {
	channel := p.config.Prefix + suffix(process)
	failure := func(err error) error { // as those of requests are read
		return wire.At(p.config.Node, wire.SubscribeFailure(channel, err))
	}
	// A call that is to hear of others subscribes before its first request.
	if err := p.learnTopology(ctx, "subscribe", &resource{p: p}, p.deadline(ctx)); err != nil {
		return nil, err
	}
	subscription, err := p.servers.Subscribe(ctx, messageReader{suffix(process), sink})
	if err != nil {
		return nil, failure(err)
	}
	l := &listener{p: p, process: process, subscription: subscription}
	if *p.marked.Load() == sharded {
		l.slots = wire.NewSlotChannels(subscription, p.config.Timeout, failure)
		return l, nil
	}
	if err := subscription.Add(ctx, channel); err != nil {
		_ = subscription.Close()
		return nil, failure(err)
	}
	return l, nil
}

type listener struct {
	p            *Protocol
	process      string
	subscription wire.Subscription
	slots        *wire.SlotChannels // nil: one channel serves all names
}

// Hear implements protocol.Listener.
func (l *listener) Hear(ctx context.Context, about protocol.Subject) (time.Time, error) {
	if l.slots == nil {
		return time.Time{}, nil
	}
	k := keysOfWatched(about)
	return l.slots.Ensure(ctx, k.slot, l.p.channelFor(k, l.process)[1:])
}

func keysOfWatched(about protocol.Subject) *keys {
	if l, ok := about.(latch); ok {
		return &l.keys
	}
	return &about.(*resource).keys
}

// Close implements protocol.Listener.
func (l *listener) Close() { _ = l.subscription.Close() }

// A messageReader reads messages: the format number, what is said, the id of the ticket that it is
// said to, and the rest. It drops everything that is none of ours: messages are hints.
type messageReader struct {
	suffix string // of our channels
	sink   protocol.Sink
}

// Gap implements wire.Sink.
func (m messageReader) Gap() { m.sink.Gap() }

// Message implements wire.Sink.
func (m messageReader) Message(channel, text string) {
	const head, id = 2, 22
	if !strings.HasSuffix(channel, m.suffix) || len(text) < head+id || text[0] != format {
		return
	}
	ticket, rest := protocol.ID(text[head:head+id]), text[head+id:]
	switch text[1] {
	case 'R':
		m.sink.Broken(ticket)
	case 'W':
		m.sink.Recall(ticket)
	case 'N':
		if after, ok := readMillis(rest); ok {
			m.sink.Nudge(ticket, after)
		}
	case 'G':
		if grant, ok := readGrant(rest); ok {
			grant.ID = ticket
			m.sink.Granted(grant)
		}
	}
}

// readGrant reads token block|claim|now.
func readGrant(text string) (protocol.Grant, bool) {
	fields := strings.Split(text, "|")
	if len(fields) != 3 || len(fields[0]) < 17 {
		return protocol.Grant{}, false
	}
	token, ok1 := wire.Number(fields[0][:16])
	block, ok2 := wire.Number(fields[0][16:])
	claim, ok3 := readMillis(fields[1])
	at, ok4 := wire.Number(fields[2])
	return protocol.Grant{Token: token, Block: block, At: at, Claim: claim},
		ok1 && ok2 && ok3 && ok4 && token > 0 && block > 0 && claim > 0
}

// readMillis reads milliseconds. It is false if they are none, or more than a duration can be.
func readMillis(text string) (time.Duration, bool) {
	n, ok := wire.Number(text)
	return time.Duration(n) * time.Millisecond, ok && n >= 0 && n <= math.MaxInt64/int64(time.Millisecond)
}

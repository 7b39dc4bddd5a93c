package native

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Listen implements protocol.Protocol: one subscription a client, to the channel of its own.
func (p *Protocol) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listening, error) {
	subscription, err := p.server.Subscribe(ctx, ear{p.channel, sink})
	if err != nil {
		return nil, p.deafness(err)
	}
	if err := subscription.Add(ctx, p.channel); err != nil {
		_ = subscription.Close()
		return nil, p.deafness(err)
	}
	return listening{subscription}, nil
}

// deafness reads why there is no subscription, as requests are read.
func (p *Protocol) deafness(err error) error {
	failure := &protocol.Failure{Op: "subscribe", Name: p.channel, Reason: protocol.Unreachable, Err: err}
	if reason := reasonOf(err.Error()); reason != protocol.Other {
		failure.Reason = reason
	}
	return failure
}

type listening struct{ subscription Subscription }

func (l listening) Close() { _ = l.subscription.Close() }

// An ear reads messages. Anything that is none of ours is dropped: messages are hints.
type ear struct {
	channel string
	sink    protocol.Sink
}

func (e ear) Gap() { e.sink.Gap() }

func (e ear) Message(channel, text string) {
	const id = 22
	if channel != e.channel || len(text) < 1+id {
		return
	}
	ticket, rest := protocol.ID(text[1:1+id]), text[1+id:]
	switch text[0] {
	case 'N':
		if after, ok := number(rest); ok && after >= 0 {
			e.sink.Nudge(ticket, time.Duration(after)*time.Millisecond)
		}
	case 'G':
		fields := strings.Split(rest, "|")
		if len(fields) != 3 || len(fields[0]) < 17 {
			return
		}
		token, ok1 := number(fields[0][:16])
		block, ok2 := number(fields[0][16:])
		claim, ok3 := number(fields[1])
		at, ok4 := number(fields[2])
		if ok1 && ok2 && ok3 && ok4 && block > 0 {
			e.sink.Granted(protocol.Grant{ID: ticket, Token: token, Block: block, At: at, Claim: time.Duration(claim) * time.Millisecond})
		}
	}
}

package native

import (
	"context"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// AskAll implements protocol.Protocol: on a single server, or where all names share a slot, for
// locks that exclude everybody.
func (p *Protocol) AskAll(ctx context.Context, asks []protocol.ResourceAsk) ([]protocol.Answer, error) {
	first := asks[0].Resource.(*resource)
	deadline := asks[0].Ask.Deadline
	if err := p.learnTopology(ctx, "lock", first, deadline); err != nil {
		return nil, err
	}
	topology, err := p.servers.Topology(ctx, deadline)
	together := err == nil && !topology.Cluster // otherwise slot by slot, which is right everywhere
	for _, a := range asks {
		r := a.Resource.(*resource)
		if mode(r.spec) != 'x' || !together && r.keys.slot != first.keys.slot {
			return nil, protocol.ErrApart
		}
	}
	answers := make([]protocol.Answer, len(asks))
	err = first.inTime(ctx, &p.scripts.all, deadline, func(notAfter string) []any {
		args := make([]any, 3, 5+5*len(asks))
		args[2] = 3 * len(asks)
		for _, a := range asks {
			k := &a.Resource.(*resource).keys
			args = append(args, k.state, k.clock, k.queue)
		}
		args = append(args, wire.Millis(asks[0].Ask.TTL), notAfter)
		for _, a := range asks {
			r := a.Resource.(*resource)
			args = append(args, r.ticket(a.Ask.Ticket), r.payload(a.Ask.Ticket))
		}
		return args
	}, func(reply wire.Reply) (int64, bool, error) { return first.readAll(reply, asks, answers) })
	return answers, err
}

// readAll reads the reply of all.lua.
func (r *resource) readAll(reply wire.Reply, asks []protocol.ResourceAsk, answers []protocol.Answer) (server int64,
	late bool, err error) {
	text, _ := reply.Value.(string)
	switch {
	case text == "A":
		return 0, false, protocol.ErrApart
	case strings.HasPrefix(text, "H"):
		server, ok := readTokens(text[1:], answers)
		if !ok {
			return 0, false, r.unreadable("lock", reply.Value)
		}
		return server, false, r.unconfirmed("lock", reply)
	case strings.HasPrefix(text, "B"), strings.HasPrefix(text, "F"):
		parsed, ok := readTaken(text, asks, answers)
		if !ok {
			return 0, false, r.unreadable("lock", reply.Value)
		}
		return parsed.answer.Server, false, parsed.refused
	}
	if parsed, ok := r.parse("lock", text); ok && parsed.late {
		return parsed.answer.Server, true, nil
	}
	return 0, false, r.unreadable("lock", reply.Value)
}

// readTokens reads the server's time and a token for each answer.
func readTokens(text string, answers []protocol.Answer) (server int64, ok bool) {
	const digits = 16
	if len(text) != digits*(1+len(answers)) {
		return 0, false
	}
	server, _ = wire.Number(text[:digits])
	for i := range answers {
		token, ok := wire.Number(text[digits*(i+1) : digits*(i+2)])
		if !ok || token <= 0 {
			return 0, false
		}
		answers[i] = protocol.Answer{Status: protocol.Held, Token: token, Block: 1, Server: server}
	}
	return server, true
}

// readTaken reads which name is taken, from 1, and the reply about it. The others are busy with it.
func readTaken(text string, asks []protocol.ResourceAsk, answers []protocol.Answer) (reading, bool) {
	number, rest, ok := strings.Cut(text[1:], "|")
	at, err := strconv.Atoi(number)
	if !ok || err != nil || at < 1 || at > len(asks) {
		return reading{}, false
	}
	parsed, ok := asks[at-1].Resource.(*resource).parse("lock", text[:1]+rest)
	if !ok {
		return reading{}, false
	}
	for i := range answers {
		answers[i] = protocol.Answer{Status: protocol.Busy}
	}
	answers[at-1] = parsed.answer
	return parsed, true
}

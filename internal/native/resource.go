package native

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// format is the number of this wire format, the first byte of every ticket.
const format = '1'

// A resource sends requests about one name.
type resource struct {
	pending
	p     *Protocol
	spec  protocol.Spec
	keys  keys
	stamp string // a ticket without its id
	heard func(block int64) any
	life  any
}

// payload prepares what others read of a caller: all but the block is known when a handle is made.
func payload(spec protocol.Spec, channel string) func(block int64) any {
	claim := strconv.FormatInt(spec.Claim.Milliseconds(), 10)
	tail := ":" + strconv.Itoa(len(channel)) + ":" + strconv.Itoa(len(spec.Owner)) + ":" + channel + spec.Owner + spec.Label
	one := any(claim + ":1" + tail)
	return func(block int64) any {
		if block == 1 {
			return one
		}
		return claim + ":" + strconv.FormatInt(block, 10) + tail
	}
}

func (r *resource) payload(t protocol.Ticket) any {
	if t.Deaf {
		return payload(r.spec, "")(t.Block)
	}
	return r.heard(t.Block)
}

func (r *resource) ticket(t protocol.Ticket) string { return r.stamp + string(t.ID) }

// Ask implements protocol.Resource.
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	mode := "t"
	switch {
	case ask.InLine:
		mode = "a"
	case ask.Join:
		mode = "j"
	}
	old := ""
	if ask.Release != nil {
		old = r.ticket(*ask.Release)
	}
	return r.answered(ctx, &r.p.scripts.ask, ask, func(notAfter string) []any {
		return []any{nil, nil, 2, r.keys.state, r.keys.clock, r.ticket(ask.Ticket), r.payload(ask.Ticket), millis(ask.TTL), notAfter,
			mode, ask.Ticket.Block, r.life, old}
	})
}

// Resume implements protocol.Resource.
func (r *resource) Resume(ctx context.Context, ask protocol.Ask, owner string, token int64) (protocol.Answer, error) {
	return r.answered(ctx, &r.p.scripts.resume, ask, func(notAfter string) []any {
		return []any{nil, nil, 2, r.keys.state, r.keys.clock, r.ticket(ask.Ticket), r.payload(ask.Ticket), millis(ask.TTL), notAfter,
			owner, digits16(token)}
	})
}

// answered runs a script that may win something. One that came too late by a clock that was set since, or has drifted
// over a long silence, is sent once more with what its answer told of the clock.
func (r *resource) answered(ctx context.Context, s *script, ask protocol.Ask, args func(notAfter string) []any) (protocol.Answer, error) {
	for again := false; ; again = true {
		notAfter, err := r.p.notAfter(ctx, r, ask.Deadline)
		if err != nil {
			return protocol.Answer{}, err
		}
		reply := r.p.run(ctx, s, r.keys.state.(string), ask.Deadline, args(notAfter))
		received := time.Now()
		if err := r.failure(s.op, reply); err != nil {
			return protocol.Answer{}, err
		}
		text, _ := reply.Value.(string)
		parsed, ok := r.parse(s.op, text)
		if !ok {
			return protocol.Answer{}, r.unreadable(s.op, reply.Value)
		}
		if parsed.foreign != nil {
			return protocol.Answer{}, parsed.foreign
		}
		r.p.clock.observe(parsed.answer.Server, received)
		if !parsed.late {
			return parsed.answer, nil
		}
		if again || !received.Before(ask.Deadline) {
			return protocol.Answer{}, &protocol.Failure{Op: s.op, Name: r.spec.Name, Reason: protocol.NoAnswer,
				Err: errors.New("the request reached the server too late and did nothing")}
		}
	}
}

// Free implements protocol.Resource.
func (r *resource) Free(ctx context.Context, free protocol.Free) (bool, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(r.p.config.Timeout)
	}
	keep, token := any("0"), any("")
	if free.Token > 0 {
		token = digits16(free.Token)
	}
	if free.Keep > 0 {
		keep = free.Keep
	}
	likely := any("")
	if free.Contended {
		likely = "z"
	}
	reply := r.p.run(ctx, &r.p.scripts.free, r.keys.state.(string), deadline,
		[]any{nil, nil, 2, r.keys.state, r.keys.clock, r.ticket(free.Ticket), r.payload(free.Ticket), token, keep, likely})
	if err := r.failure("release", reply); err != nil {
		return false, err
	}
	switch value := reply.Value.(type) {
	case int64:
		return value == 1, nil
	case string:
		if parsed, ok := r.parse("release", value); ok && parsed.foreign != nil {
			return false, parsed.foreign
		}
	}
	return false, r.unreadable("release", reply.Value)
}

// millis is a duration as scripts take it: whole milliseconds, never 0.
func millis(d time.Duration) int64 { return max(1, d.Milliseconds()) }

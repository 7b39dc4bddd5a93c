package native

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// format is the number of this wire format, the first byte of every ticket.
const format = '3'

// A resource sends requests about one name.
type resource struct {
	p     *Protocol
	spec  protocol.Spec
	keys  keys
	front [4]byte // a ticket without its id
	life  any     // of a place that is not kept, in milliseconds
}

// bind returns a resource. Holds do not keep theirs, so it is asked for with each request: the one
// that was made lately is used again.
func (p *Protocol) bind(spec protocol.Spec) *resource {
	place := &p.recent[maphash.String(p.seed, spec.Name)%recent]
	r := place.Load()
	if r == nil || r.spec != spec {
		r = p.newResource(spec)
		place.Store(r)
	}
	return r
}

// newResource makes a resource, which never changes.
func (p *Protocol) newResource(spec protocol.Spec) *resource {
	life := usualLife
	if spec.Life != 0 && spec.Life != protocol.PlaceLife {
		life = spec.Life.Milliseconds()
	}
	return &resource{
		p:     p,
		spec:  spec,
		keys:  keysOf(p.config.Prefix, spec.Name),
		front: [...]byte{format, byte(spec.Kind), mode(spec), ':'},
		life:  life,
	}
}

// usualLife is the life of most places, boxed once.
var usualLife = any(protocol.PlaceLife.Milliseconds())

// A usualPayload is the payload of most tickets of resources that differ only in the name.
type usualPayload struct {
	spec protocol.Spec // without a name
	text any
}

// mode says beside whom a ticket can hold. See the package document.
func mode(spec protocol.Spec) byte {
	switch {
	case spec.Shared:
		return 's'
	case spec.Owner != "":
		return 'o'
	case spec.Kind == protocol.Election:
		return 'w'
	}
	return 'x'
}

func (r *resource) ticket(t protocol.Ticket) string {
	return string(append(append(make([]byte, 0, ticketLength), r.front[:]...), t.ID...))
}

// payload is what others read of a ticket. It does not change while the ticket lives: all that it
// is made of is known before the first request.
func (r *resource) payload(t protocol.Ticket) any {
	spec := r.spec
	spec.Name = ""
	usual := r.isUsual(t)
	if usual {
		if last := r.p.usual.Load(); last != nil && last.spec == spec {
			return last.text
		}
	}
	claim := strconv.FormatInt(r.spec.Claim.Milliseconds(), 10)
	if t.Weight > 0 {
		claim += "/" + strconv.FormatInt(t.Weight, 10) + "/" + strconv.FormatInt(r.spec.Permits, 10)
	}
	channel, extras := r.channelOf(t), extrasOf(t)
	ttl := strconv.FormatInt(r.spec.TTL.Milliseconds(), 10)
	if r.spec.Fixed {
		ttl += "f"
	}
	text := any(claim + ":" + strconv.FormatInt(t.Block, 10) + ":" + ttl + ":" + strconv.Itoa(len(channel)) + ":" +
		strconv.Itoa(len(r.spec.Owner)) + ":" + strconv.Itoa(len(extras)) + ":" + channel + r.spec.Owner + extras +
		r.spec.Label)
	if usual {
		r.p.usual.Store(&usualPayload{spec, text})
	}
	return text
}

// isUsual reports whether the payload of a ticket is that of most tickets of a client.
func (r *resource) isUsual(t protocol.Ticket) bool {
	mark := r.p.marked.Load()
	return t.Block == 1 && t.Weight == 0 && !t.NoMessages && t.Channel == "" && t.Keep == 0 && len(t.Under) == 0 &&
		t.Trace == "" && !t.Retain && !t.Wanted && mark != nil && *mark != sharded
}

func extrasOf(t protocol.Ticket) (extras string) {
	if t.Keep > 0 {
		extras = extra("keep", strconv.FormatInt(t.Keep.Milliseconds(), 10))
	}
	switch {
	case t.Retain:
		extras += extra("hears", "r")
	case t.Wanted:
		extras += extra("hears", "w")
	}
	if len(t.Under) > 0 {
		extras += extra("under", evidence(t))
	}
	if t.Trace != "" {
		extras += extra("trace", t.Trace)
	}
	return extras
}

func extra(name, value string) string { return name + ":" + strconv.Itoa(len(value)) + ":" + value }

// channelOf is the channel of a ticket, with its mark; empty if no message reaches its process.
func (r *resource) channelOf(t protocol.Ticket) string {
	switch {
	case t.NoMessages:
		return ""
	case t.Channel != "":
		return t.Channel
	case t.Keep > 0:
		return r.p.channelFor(&r.keys, ticketProcess(t.ID))
	}
	return r.p.channelFor(&r.keys, r.p.config.Process)
}

// args begins the words of a script, with room for more: two for its digest, then the keys. The key
// of the watchers is always there, although most names have none. A cluster that moves a slot
// refuses a script before it runs if one of its keys is not there. Otherwise the move could end the
// script between taking a hold out and putting another in.
func (r *resource) args(room int) []any {
	k := &r.keys
	return append(make([]any, 0, 7+room), nil, nil, 4, k.state, k.clock, k.queue, k.watchers)
}

// Ask implements protocol.Resource.
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	how := "t"
	switch {
	case ask.Leaving:
		how = "l"
	case ask.InLine:
		how = "a"
	case ask.Join && ask.Ticket.Keep > 0:
		how = "k"
	case ask.Join:
		how = "j"
	}
	s := &r.p.scripts.ask
	if ask.Release != nil {
		s = &r.p.scripts.swap
	}
	return r.answered(ctx, s, ask, func(notAfter string) []any {
		args := append(r.args(9), r.ticket(ask.Ticket), r.payload(ask.Ticket), wire.Millis(ask.TTL), notAfter,
			how, ask.Ticket.Block, r.life)
		if ask.Release != nil {
			args = append(args, r.ticket(*ask.Release), r.payload(*ask.Release))
		}
		return args
	})
}

// Downgrade implements protocol.Resource.
func (r *resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	spec := r.spec
	spec.Shared = false
	excludes := r.p.bind(spec)
	return r.answered(ctx, &r.p.scripts.downgrade, ask, func(notAfter string) []any {
		return append(r.args(7), r.ticket(ask.Ticket), r.payload(ask.Ticket), wire.Millis(ask.TTL), notAfter,
			excludes.ticket(ask.Ticket), excludes.payload(ask.Ticket), r.life)
	})
}

// answered runs a script that may win something.
func (r *resource) answered(ctx context.Context, s *script, ask protocol.Ask,
	args func(notAfter string) []any) (protocol.Answer, error) {
	var answer protocol.Answer
	err := r.inTime(ctx, s, ask.Deadline, args, func(reply wire.Reply) (server int64, late bool, err error) {
		text, _ := reply.Value.(string)
		parsed, ok := r.parse(s.Op, text)
		switch {
		case !ok:
			return 0, false, r.unreadable(s.Op, reply.Value)
		case parsed.refused != nil:
			return 0, false, parsed.refused
		}
		if parsed.answer.Status == protocol.Held {
			if err := r.unconfirmed(s.Op, reply); err != nil {
				return parsed.answer.Server, false, err
			}
		}
		answer = parsed.answer
		return answer.Server, parsed.late, nil
	})
	return answer, err
}

// inTime runs a script that carries a not-after, and notes the server's time that read finds in the
// reply. A request may be late by a clock that was set since, or has drifted over a long silence.
// Then it is sent once more with what its answer told of the clock.
func (r *resource) inTime(ctx context.Context, s *script, deadline time.Time, args func(notAfter string) []any,
	read func(wire.Reply) (server int64, late bool, err error)) error {
	if err := r.p.learnTopology(ctx, s.Op, r, deadline); err != nil {
		return err
	}
	for again := false; ; again = true {
		notAfter, err := r.p.notAfter(ctx, s.Op, r, deadline)
		if err != nil {
			return err
		}
		request := args(notAfter)
		reply := r.p.run(ctx, s, &r.keys, deadline, request)
		received := time.Now()
		if err := r.failureOf(s, reply, wire.KeysIn(request)...); err != nil {
			return err
		}
		server, late, err := read(reply)
		if server != 0 {
			r.p.servers.Serving(r.keys.slot).Clock.Observe(server, received)
		}
		if err != nil {
			return r.at(reply, err)
		}
		if !late {
			return nil
		}
		if again || !received.Before(deadline) {
			return r.at(reply, &protocol.Failure{Op: s.Op, Name: r.spec.Name, Reason: protocol.NoAnswer,
				Err: errors.New("the request reached the server too late and did nothing")})
		}
	}
}

// Free implements protocol.Resource.
func (r *resource) Free(ctx context.Context, free protocol.FreeRequest) (bool, error) {
	keep := any("0")
	if free.Keep > 0 {
		keep = free.Keep
	}
	args := append(r.args(5), r.ticket(free.Ticket), r.payload(free.Ticket), keep, r.life)
	if free.Next != "" {
		args = append(args, string(free.Next))
	}
	return r.runOnce(ctx, &r.p.scripts.free, args)
}

// deadline is that of one request under a context: it has Config.Timeout at most.
func (p *Protocol) deadline(ctx context.Context) time.Time {
	deadline := time.Now().Add(p.config.Timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		return at
	}
	return deadline
}

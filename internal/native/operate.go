package native

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Break implements protocol.Operators.
func (p *Protocol) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	how := "b"
	if b.Force {
		how = "f"
	}
	r := p.bind(protocol.Spec{Name: name, Kind: b.Kind})
	return r.operate(ctx, &p.scripts.breaks, wire.Digits16(b.Token), b.By, how, r.life)
}

// Evict implements protocol.Operators.
func (p *Protocol) Evict(ctx context.Context, name string, kind protocol.Kind, id protocol.ID, by string) (bool,
	error) {
	if kind == protocol.Latch {
		return false, &protocol.Failure{Op: "evict", Name: name, Reason: protocol.Unsupported, Err: protocol.ErrNoQueue}
	}
	r := p.bind(protocol.Spec{Name: name, Kind: kind})
	return r.operate(ctx, &p.scripts.evict, string(id), by, r.life)
}

// Tell implements protocol.Operators.
func (p *Protocol) Tell(ctx context.Context, name string, kind protocol.Kind, id protocol.ID) (t protocol.TellCount,
	err error) {
	r, s := p.bind(protocol.Spec{Name: name, Kind: kind}), &p.scripts.tell
	args := append(r.args(3), string(r.front[:]), string(id), r.life)
	reply := r.p.run(ctx, s, &r.keys, r.p.deadline(ctx), args)
	if err := r.failureOf(s, reply, wire.KeysIn(args)...); err != nil {
		return t, err
	}
	text, _ := reply.Value.(string)
	found, heard, cut := strings.Cut(text, "|")
	var ok1, ok2 bool
	t.Found, ok1 = wire.Number(found)
	t.Heard, ok2 = wire.Number(heard)
	if cut && ok1 && ok2 {
		return t, nil
	}
	return t, r.refusal(s.Op, reply)
}

// operate runs a script of an operator: it does something or finds nothing to do.
func (r *resource) operate(ctx context.Context, s *script, words ...any) (bool, error) {
	return r.runOnce(ctx, s, append(append(r.args(5), string(r.front[:])), words...))
}

// runOnce sends a script that does something or finds nothing to do, and reports which.
func (r *resource) runOnce(ctx context.Context, s *script, args []any) (bool, error) {
	reply := r.p.run(ctx, s, &r.keys, r.p.deadline(ctx), args)
	if err := r.failureOf(s, reply, wire.KeysIn(args)...); err != nil {
		return false, err
	}
	if done, ok := reply.Value.(int64); ok {
		return done == 1, nil
	}
	return false, r.refusal(s.Op, reply)
}

// refusal is the error of a reply that is not what its script answers: why it refuses, in words, or
// that nobody can read it.
func (r *resource) refusal(op string, reply wire.Reply) error {
	text, _ := reply.Value.(string)
	if parsed, ok := r.parse(op, text); ok && parsed.refused != nil {
		return r.at(reply, parsed.refused)
	}
	return r.at(reply, r.unreadable(op, reply.Value))
}

package native

import (
	"context"

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

// operate runs a script of an operator: it does something or finds nothing to do.
func (r *resource) operate(ctx context.Context, s *script, words ...any) (bool, error) {
	return r.runOnce(ctx, s, append(append(r.args(5), r.front), words...))
}

// runOnce sends a script that does something or finds nothing to do, and reports which.
func (r *resource) runOnce(ctx context.Context, s *script, args []any) (bool, error) {
	reply := r.p.run(ctx, s, &r.keys, r.p.deadline(ctx), args)
	if err := r.failureOf(s, reply, wire.KeysIn(args)...); err != nil {
		return false, err
	}
	switch value := reply.Value.(type) {
	case int64:
		return value == 1, nil
	case string:
		if parsed, ok := r.parse(s.Op, value); ok && parsed.refused != nil {
			return false, r.at(reply, parsed.refused)
		}
	}
	return false, r.at(reply, r.unreadable(s.Op, reply.Value))
}

package native

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Resize implements protocol.Resource. A semaphore that nobody uses has no number to change.
func (r *resource) Resize(ctx context.Context, permits int64, deadline time.Time) error {
	return r.inTime(ctx, &r.p.scripts.resize, deadline, func(notAfter string) []any {
		return append(r.args(4), string(r.front[:]), permits, notAfter, r.life)
	}, func(reply wire.Reply) (int64, bool, error) {
		switch value := reply.Value.(type) {
		case int64:
			return 0, false, nil
		case string:
			if parsed, ok := r.parse("resize", value); ok && (parsed.late || parsed.refused != nil) {
				return parsed.answer.Server, parsed.late, parsed.refused
			}
		}
		return 0, false, r.unreadable("resize", reply.Value)
	})
}

// Look implements protocol.Subject.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	deadline := r.p.deadline(ctx)
	if err := r.p.learnTopology(ctx, "look", r, deadline); err != nil {
		return protocol.Standing{}, err
	}
	args := append(append(r.args(4), string(r.front[:])), r.watcher(watcher)...)
	reply := r.p.run(ctx, &r.p.scripts.look, &r.keys, deadline, args)
	if err := r.failureOf(&r.p.scripts.look, reply, wire.KeysIn(args)...); err != nil {
		return protocol.Standing{}, err
	}
	text, _ := reply.Value.(string)
	if parsed, ok := r.parse("look", text); ok && parsed.refused != nil {
		return protocol.Standing{}, r.at(reply, parsed.refused)
	}
	fields := strings.SplitN(text, "|", 6)
	n, ok := numbers(fields, 5)
	if !ok || len(fields) != 6 {
		return protocol.Standing{}, r.at(reply, r.unreadable("look", reply.Value))
	}
	who, token := holder(fields[5])
	return protocol.Standing{
		Server: n[0], Holders: int(n[1]), Waiters: int(n[2]),
		Token: token, Since: token, // see protocol.Standing
		Permits: n[3], Taken: n[4], Holder: who,
	}, nil
}

// watcher is what a script needs to tell a watcher of the next change: id, channel, life.
func (r *resource) watcher(t *protocol.Ticket) []any {
	if t == nil || t.NoMessages {
		return []any{"", "", 0}
	}
	return []any{string(t.ID), r.p.channelFor(&r.keys, r.p.config.Process), r.life}
}

// Unwatch implements protocol.Subject.
func (r *resource) Unwatch(ctx context.Context, watcher protocol.Ticket) error {
	key := r.keys.watchers.(string)
	reply := r.p.servers.Serving(r.keys.slot).Do(ctx,
		wire.Request{Op: "unwatch", Args: []any{"HDEL", key, string(watcher.ID)}, Key: key}, r.p.deadline(ctx))
	return r.failure("unwatch", reply, r.keys.watchers)
}

// numbers reads the first n fields.
func numbers(fields []string, n int) ([]int64, bool) {
	if len(fields) < n {
		return nil, false
	}
	out := make([]int64, n)
	for i := range out {
		var ok bool
		if out[i], ok = wire.Number(fields[i]); !ok {
			return nil, false
		}
	}
	return out, true
}

package native

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A latch sends requests about one latch.
type latch struct{ *resource }

// BindLatch implements protocol.Protocol.
func (p *Protocol) BindLatch(spec protocol.Spec) protocol.LatchResource {
	spec.Kind = protocol.Latch
	r := p.newResource(spec)
	r.front = [...]byte{format, byte(protocol.Latch), '-', ':'}
	return latch{r}
}

// Set implements protocol.LatchResource.
func (l latch) Set(ctx context.Context, id protocol.ID, count int64, ttl time.Duration,
	deadline time.Time) (protocol.Standing, bool, error) {
	return l.run(ctx, deadline, deadline, "s", string(id), count, wire.Millis(ttl), nil)
}

// CountDown implements protocol.LatchResource.
func (l latch) CountDown(ctx context.Context, id protocol.ID, deadline, last time.Time) (protocol.Standing, error) {
	standing, _, err := l.run(ctx, deadline, last, "d", string(id), 0, 0, nil)
	return standing, err
}

// Look implements protocol.Subject.
func (l latch) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	deadline := l.p.deadline(ctx)
	standing, _, err := l.run(ctx, deadline, deadline, "l", "", 0, 0, watcher)
	return standing, err
}

// run sends one request of the latch. After last, no request with this id takes effect.
func (l latch) run(ctx context.Context, deadline, last time.Time, what, id string, count, ttl int64,
	watcher *protocol.Ticket) (protocol.Standing, bool, error) {
	var standing protocol.Standing
	done := false
	err := l.inTime(ctx, &l.p.scripts.latch, deadline, func(notAfter string) []any {
		k, who := &l.keys, l.watcher(watcher)
		if what == "l" {
			id = who[0].(string)
		}
		at, _ := wire.Number(notAfter)
		return []any{nil, nil, 3, k.state, k.queue, k.watchers, string(l.front[:]), what, id, notAfter, count,
			ttl, who[1], who[2],
			wire.Digits16(at + last.Sub(deadline).Microseconds())}
	}, func(reply wire.Reply) (int64, bool, error) {
		text, _ := reply.Value.(string)
		if parsed, ok := l.parse("latch", text); ok && (parsed.late || parsed.refused != nil) {
			return parsed.answer.Server, parsed.late, parsed.refused
		}
		fields := strings.Split(text, "|")
		if len(fields) != 4 || len(fields[1]) != 1 {
			return 0, false, l.unreadable("latch", reply.Value)
		}
		server, ok1 := wire.Number(fields[0])
		count, ok2 := wire.Number(fields[2])
		if !ok1 || !ok2 {
			return 0, false, l.unreadable("latch", reply.Value)
		}
		standing = protocol.Standing{Server: server, Count: count}
		switch fields[1] {
		case "s":
			standing.Latch = protocol.LatchSet
		case "o":
			standing.Latch = protocol.LatchOpen
		}
		done = fields[3] == "1"
		return server, false, nil
	})
	return standing, done, err
}

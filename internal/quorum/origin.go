package quorum

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// originMark begins every origin of this format.
const originMark = "q" + string(format)

// Origin implements protocol.Resource: "q3", and for each node what its clock showed at the grant,
// 0 if that is not known. The clock of our answers is that of this process, which says nothing to
// another one.
func (r *resource) Origin(_ protocol.Ticket, granted int64) protocol.Origin {
	p, now := r.p, time.Now()
	age := p.micros(now) - granted
	shown := make([]string, len(p.nodes))
	for i, n := range p.nodes {
		at, ok := n.clock.At(now)
		if !ok {
			at = age
		}
		shown[i] = strconv.FormatInt(max(0, at-age), 10)
	}
	return protocol.Origin(originMark + strings.Join(shown, ","))
}

// Adopt implements protocol.Resource. The age of the hold is the median of what the nodes' clocks
// say that it is. A fixed hold ends by its age, so that is the most that they can say, however slow
// the answers were. The clock of our answers needs no request.
func (r *resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin,
	timed bool) (protocol.AdoptedHold, error) {
	p := r.p
	text, ok := strings.CutPrefix(string(origin), originMark)
	shown := strings.Split(text, ",")
	if !ok || len(shown) != len(p.nodes) {
		return protocol.AdoptedHold{}, protocol.ErrOrigin
	}
	out := protocol.AdoptedHold{Ticket: ticket}
	if !timed {
		return out, nil
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	if err := r.ensureReady(ctx, deadline); err != nil {
		return protocol.AdoptedHold{}, r.asFailure("attach", err)
	}
	out.Sent = time.Now()
	out.Server = p.micros(out.Sent)
	var ages []int64
	for i, n := range p.nodes {
		granted, number := wire.Number(shown[i])
		if !number {
			return protocol.AdoptedHold{}, protocol.ErrOrigin
		}
		at, known := n.clock.At(out.Sent)
		if r.spec.Fixed {
			at, known = n.clock.latestAt(out.Sent)
		}
		if known && granted > 0 {
			ages = append(ages, at-granted)
		}
	}
	if len(ages) == 0 {
		return protocol.AdoptedHold{}, r.asFailure("attach", errNoTime)
	}
	slices.Sort(ages)
	out.Granted = out.Server - ages[len(ages)/2]
	return out, nil
}

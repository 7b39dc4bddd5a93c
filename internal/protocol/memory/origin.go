package memory

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Origin implements protocol.Resource: the time of the grant is all that there is to know.
func (r *resource) Origin(_ protocol.Ticket, granted int64) protocol.Origin {
	return protocol.Origin("m" + strconv.FormatInt(granted, 10))
}

// Adopt implements protocol.Resource.
func (r *resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin,
	timed bool) (protocol.AdoptedHold, error) {
	text, ok := strings.CutPrefix(string(origin), "m")
	granted, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return protocol.AdoptedHold{}, protocol.ErrOrigin
	}
	if err := r.client.server.over(ctx, "attach", r.spec.Name, time.Time{}); err != nil {
		return protocol.AdoptedHold{}, err
	}
	out := protocol.AdoptedHold{Ticket: ticket, Granted: granted}
	if timed {
		out.Sent, out.Server = r.client.server.clock(), r.client.server.now()
	}
	return out, nil
}

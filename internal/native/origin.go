package native

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// originMark begins every origin of this format.
const originMark = "n" + string(format)

// Origin implements protocol.Resource: "n2", the time of the grant, ":", and the channel, which is
// a part of the payload.
func (r *resource) Origin(ticket protocol.Ticket, granted int64) protocol.Origin {
	return protocol.Origin(originMark + strconv.FormatInt(granted, 10) + ":" + r.channelOf(ticket))
}

// Adopt implements protocol.Resource.
func (r *resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin, timed bool) (protocol.Adopted, error) {
	text, ok := strings.CutPrefix(string(origin), originMark)
	granted, channel, cut := strings.Cut(text, ":")
	at, number := wire.Number(granted)
	if !ok || !cut || !number || (channel == "") != ticket.NoMessages {
		return protocol.Adopted{}, protocol.ErrOrigin
	}
	ticket.Channel = channel
	out := protocol.Adopted{Ticket: ticket, Granted: at}
	if !timed {
		return out, nil
	}
	var err error
	out.Sent = time.Now()
	out.Server, err = r.p.askTime(ctx, r, "attach", r.p.deadline(ctx))
	return out, err
}

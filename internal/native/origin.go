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
// a part of the payload. If the ticket has evidence, which is another part, "+" and its length
// stand before the ":", and the evidence before the channel.
func (r *resource) Origin(ticket protocol.Ticket, granted int64) protocol.Origin {
	under, length := evidence(ticket), ""
	if under != "" {
		length = "+" + strconv.Itoa(len(under))
	}
	return protocol.Origin(originMark + strconv.FormatInt(granted, 10) + length + ":" + under + r.channelOf(ticket))
}

// Adopt implements protocol.Resource.
func (r *resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin, timed bool) (protocol.Adopted, error) {
	text, ok := strings.CutPrefix(string(origin), originMark)
	granted, channel, cut := strings.Cut(text, ":")
	granted, length, under := strings.Cut(granted, "+")
	at, number := wire.Number(granted)
	if ok = ok && cut && number; ok && under {
		channel, ok = adoptEvidence(&ticket, length, channel)
	}
	if !ok || (channel == "") != ticket.NoMessages {
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

// adoptEvidence reads the evidence of a ticket from the head of a text, and returns the rest.
func adoptEvidence(ticket *protocol.Ticket, length, text string) (rest string, ok bool) {
	n, number := wire.Number(length)
	if !number || n < 0 || n > int64(len(text)) {
		return "", false
	}
	ticket.Under, ticket.More = readEvidence(text[:n])
	return text[n:], len(ticket.Under) > 0 && evidence(*ticket) == text[:n]
}

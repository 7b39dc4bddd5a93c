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

// Origin implements protocol.Resource: "n3", the time of the grant, "r" if the hold might be
// retained or else "w" if its holder is to be told of others that ask, ":", and the channel, which
// is a part of the payload. Evidence and a trace are parts of it too. If the ticket has them, "+"
// and the length of the one, and "~" and the length of the other, stand before the ":", and the
// texts before the channel.
func (r *resource) Origin(ticket protocol.Ticket, granted int64) protocol.Origin {
	under, lengths := evidence(ticket), ""
	if under != "" {
		lengths = "+" + strconv.Itoa(len(under))
	}
	if ticket.Trace != "" {
		lengths += "~" + strconv.Itoa(len(ticket.Trace))
	}
	at := strconv.FormatInt(granted, 10)
	switch {
	case ticket.Retain:
		at += "r"
	case ticket.Wanted:
		at += "w"
	}
	return protocol.Origin(originMark + at + lengths + ":" + under + ticket.Trace + r.channelOf(ticket))
}

// Adopt implements protocol.Resource.
func (r *resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin,
	timed bool) (protocol.AdoptedHold, error) {
	text, ok := strings.CutPrefix(string(origin), originMark)
	granted, channel, cut := strings.Cut(text, ":")
	granted, traceLength, traced := strings.Cut(granted, "~")
	granted, length, under := strings.Cut(granted, "+")
	granted, ticket.Retain = strings.CutSuffix(granted, "r")
	granted, ticket.Wanted = strings.CutSuffix(granted, "w")
	at, number := wire.Number(granted)
	if ok = ok && cut && number; ok && under {
		channel, ok = adoptEvidence(&ticket, length, channel)
	}
	if ok && traced {
		ticket.Trace, channel, ok = cutText(traceLength, channel)
		ok = ok && ticket.Trace != ""
	}
	if !ok || (channel == "") != ticket.NoMessages {
		return protocol.AdoptedHold{}, protocol.ErrOrigin
	}
	ticket.Channel = channel
	out := protocol.AdoptedHold{Ticket: ticket, Granted: at}
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
	named, rest, ok := cutText(length, text)
	ticket.Under, ticket.More = readEvidence(named)
	return rest, ok && len(ticket.Under) > 0 && evidence(*ticket) == named
}

// cutText cuts as many bytes off the head of a text as a length says.
func cutText(length, text string) (head, rest string, ok bool) {
	n, number := wire.Number(length)
	if !number || n < 0 || n > int64(len(text)) {
		return "", "", false
	}
	return text[:n], text[n:], true
}

package native

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Lengths of what stands before a payload.
const (
	ticketLength = 4 + idLength
	tokenLength  = 16
)

// A payload is what a member says of a holder or a waiter. See the package document.
type payload struct {
	claim   time.Duration
	weight  int64 // of a semaphore; else 0
	block   int64
	ttl     time.Duration
	fixed   bool
	channel string // with its mark
	owner   string
	extras  string
	label   string
}

// readPayload takes a payload apart. It is false if the text is none.
func readPayload(text string) (out payload, ok bool) {
	fields := strings.SplitN(text, ":", 7)
	if len(fields) != 7 {
		return out, false
	}
	claim, weights, _ := strings.Cut(fields[0], "/")
	weight, _, _ := strings.Cut(weights, "/")
	ttl, fixed := strings.CutSuffix(fields[2], "f")
	out.fixed = fixed
	out.weight, _ = wire.Number(weight)
	var ok1, ok2, ok3 bool
	out.claim, ok1 = readMillis(claim)
	out.block, ok2 = wire.Number(fields[1])
	out.ttl, ok3 = readMillis(ttl)
	tail := fields[6]
	for i, part := range []*string{&out.channel, &out.owner, &out.extras} {
		var fits bool
		if *part, tail, fits = cutText(fields[3+i], tail); !fits {
			return out, false
		}
	}
	out.label = tail
	return out, ok1 && ok2 && ok3
}

// extra is the value of a named extra; empty if there is none.
func (p payload) extra(name string) string {
	for rest := p.extras; rest != ""; {
		key, tail, _ := strings.Cut(rest, ":")
		length, tail, _ := strings.Cut(tail, ":")
		value, tail, ok := cutText(length, tail)
		if !ok || key == name {
			return value
		}
		rest = tail
	}
	return ""
}

// party is the holder or waiter whose ticket stands before the payload. One of no owner is its own.
func (p payload) party(ticket string) protocol.Party {
	out := protocol.Party{Owner: p.owner, Label: p.label, Trace: p.extra("trace"), Kept: p.extra("keep") != "",
		Retains: p.extra("hears") == "r"}
	if p.owner == "" {
		out.Owner, out.Unnamed = string(idOf(ticket)), true
	}
	return out
}

// process is host/pid/random, as the channel says; empty if the channel is that of a kept place.
func (p payload) process(prefix string) string {
	if p.channel == "" {
		return ""
	}
	rest, ours := strings.CutPrefix(p.channel[1:], prefix+":")
	if _, behind, slot := strings.Cut(rest, "}:"); slot && strings.HasPrefix(rest, "{") {
		rest = behind
	}
	process, ours2 := strings.CutPrefix(rest, "@")
	if !ours || !ours2 || strings.HasPrefix(process, ticketProcess("")) {
		return ""
	}
	return process
}

// idOf is the id in a ticket.
func idOf(ticket string) protocol.ID {
	return protocol.ID(ticket[ticketLength-idLength : ticketLength])
}

const idLength = 22 // of the id of a ticket

// evidence is the value of the extra "under" of a ticket; empty if it has none. See the package
// document.
func evidence(t protocol.Ticket) string {
	var text strings.Builder
	for _, lease := range t.Under {
		text.WriteString(string(lease.ID) + strconv.Itoa(len(lease.Name)) + ":" + lease.Name)
	}
	if t.More {
		text.WriteByte('+')
	}
	return text.String()
}

// readEvidence reads what evidence wrote. More: there are more leases than the text names. It reads
// up to what it cannot read.
func readEvidence(text string) (under []protocol.Evidence, more bool) {
	for len(text) > idLength {
		id, rest := text[:idLength], text[idLength:]
		length, rest, found := strings.Cut(rest, ":")
		name, rest, ok := cutText(length, rest)
		if !found || !ok {
			return under, false
		}
		under = append(under, protocol.Evidence{Name: name, ID: protocol.ID(id)})
		text = rest
	}
	return under, text == "+"
}

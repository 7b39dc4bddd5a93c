package quorum

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const idSize = 22

// The places of what the value of a hold has, behind its mode: the end, the first and the last
// token, the round, and the payload (the document of this package).
const (
	endAt     = 3
	firstAt   = 16
	lastAt    = 32
	roundAt   = 48
	payloadAt = 64
)

// payload returns what others read of a hold: "ttl:length:length:length:" channel owner extras
// label (state.lua).
func payload(spec protocol.Spec, channel, trace string) string {
	ttl := strconv.FormatInt(spec.TTL.Milliseconds(), 10)
	if spec.Fixed {
		ttl += "f"
	}
	extras := ""
	if trace != "" {
		extras = "trace:" + withLength(trace)
	}
	return ttl + ":" + strconv.Itoa(len(channel)) + ":" + strconv.Itoa(len(spec.Owner)) + ":" +
		strconv.Itoa(len(extras)) + ":" +
		channel + spec.Owner + extras + spec.Label
}

// A holdPayload is what a payload says.
type holdPayload struct {
	ttl                           time.Duration
	fixed                         bool
	channel, owner, extras, label string
}

// payloadOf reads a payload; false if it is none.
func payloadOf(text string) (p holdPayload, ok bool) {
	fields := strings.SplitN(text, ":", 5)
	if len(fields) != 5 {
		return p, false
	}
	ttl, fixed := strings.CutSuffix(fields[0], "f")
	ms, ok := wire.Number(ttl)
	if !ok || ms < 0 {
		return p, false
	}
	p.ttl, p.fixed, p.label = time.Duration(min(ms, 1<<43))*time.Millisecond, fixed, fields[4]
	for i, part := range []*string{&p.channel, &p.owner, &p.extras} {
		n, ok := wire.Number(fields[1+i])
		if !ok || n < 0 || n > int64(len(p.label)) {
			return p, false
		}
		*part, p.label = p.label[:n], p.label[n:]
	}
	return p, true
}

// extra returns the value of a named extra; empty if there is none.
func extra(extras, name string) string {
	for extras != "" {
		key, rest, found := strings.Cut(extras, ":")
		value, rest, ok := countedText(rest)
		if !found || !ok {
			break
		}
		if key == name {
			return value
		}
		extras = rest
	}
	return ""
}

// partyOf reads who is behind a hold. A field that cannot be read stays empty: it is for people
// only.
func partyOf(id protocol.ID, payload string) protocol.Party {
	p, ok := payloadOf(payload)
	if onlyRemainders(id) || !ok {
		return protocol.Party{}
	}
	who := protocol.Party{Owner: p.owner, Label: p.label, Trace: extra(p.extras, "trace")}
	if who.Owner == "" {
		who.Owner, who.Unnamed = string(id), true // a hold of no owner is its own
	}
	return who
}

// remainderOf returns why there is a remainder with this payload, and by whom. The extras of a
// broken hold begin with that.
func remainderOf(payload string) (protocol.HoldState, string) {
	p, ok := payloadOf(payload)
	switch {
	case !ok:
		return 0, ""
	case strings.HasPrefix(p.extras, "by:"):
		return protocol.HoldBroken, extra(p.extras, "by")
	}
	return protocol.HoldMinHold, ""
}

// holderHead is how long an id and a token are together.
const holderHead = idSize + 16

// holderOf reads an id, a token and a payload; false when they are none.
func holderOf(text string) (id protocol.ID, token int64, who protocol.Party, ok bool) {
	if len(text) < holderHead {
		return "", 0, who, false
	}
	id = protocol.ID(text[:idSize])
	token, ok = wire.Number(text[idSize:holderHead])
	return id, token, partyOf(id, text[holderHead:]), ok && token >= 0
}

package quorum

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const idSize = 22

// payload is what others read of a hold: "ttl:length:length:length:" channel owner extras label
// (state.lua).
func payload(spec protocol.Spec, channel string) string {
	ttl := strconv.FormatInt(spec.TTL.Milliseconds(), 10)
	if spec.Fixed {
		ttl += "f"
	}
	return ttl + ":" + strconv.Itoa(len(channel)) + ":" + strconv.Itoa(len(spec.Owner)) + ":0:" + channel + spec.Owner + spec.Label
}

// partyOf reads who is behind a hold. What cannot be read stays empty: it is for people only.
func partyOf(id protocol.ID, payload string) protocol.Party {
	fields := strings.SplitN(payload, ":", 5)
	if onlyRemainders(id) || len(fields) != 5 {
		return protocol.Party{}
	}
	tail := fields[4]
	var parts [3]string // channel, owner, extras
	for i := range parts {
		n, ok := wire.Number(fields[1+i])
		if !ok || n < 0 || n > int64(len(tail)) {
			return protocol.Party{}
		}
		parts[i], tail = tail[:n], tail[n:]
	}
	who := protocol.Party{Owner: parts[1], Label: tail}
	if who.Owner == "" {
		who.Owner, who.Unnamed = string(id), true // a hold of no owner is its own
	}
	return who
}

// holderOf reads an id, a token and a payload; false when they are none.
func holderOf(text string) (id protocol.ID, token int64, who protocol.Party, ok bool) {
	const head = idSize + 16
	if len(text) < head {
		return "", 0, who, false
	}
	id = protocol.ID(text[:idSize])
	token, ok = wire.Number(text[idSize:head])
	return id, token, partyOf(id, text[head:]), ok && token >= 0
}

// onlyRemainders tells whether an id is that of nobody, where only remainders are left (state.lua).
func onlyRemainders(id protocol.ID) bool { return strings.HasPrefix(string(id), "~") }

// takenBy reads who took a hold over: a letter that says why, and the label. It is false if the
// text says nothing.
func takenBy(text string) (by string, ok bool) {
	if text == "" {
		return "", false
	}
	return text[1:], true
}

package quorum

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A reply is what one node said to a question. Which fields are set depends on the script, and on
// its status.
type reply struct {
	node   *node
	facts  facts
	counts bool   // it answered, and counts: it forgot no hold, as far as is known
	why    string // it does not count; empty: the facts say why
	err    error  // why there is no answer
	status byte   // the letter of the script's answer; 0: there is none

	first, final int64 // tokens of our hold

	remaining        time.Duration // until the first hold ends
	holders, waiters int
	holder           protocol.ID // of a hold; see nobody
	token            int64       // of the holder; 0: the node accepted none
	party            protocol.Party
	left             protocol.HoldState // where only remainders are left: what kept us out
	leftBy           string             // of a broken hold: the label of the caller that broke it

	by string // if the hold was broken: the label of the caller that did it

	letters string         // of a renewal: a status for each hold
	brokeBy map[int]string // of a renewal: by, of each hold that was broken
}

// The letters of answers to an ask, as ask.lua tells them. What takes letters takes several.
const (
	letterHeld    = "H" // the name is held for us, and our tokens are accepted
	letterRefused = "T" // the name is held for us, and a larger token was accepted before
	letterBusy    = "B" // another hold, or a remainder, keeps us out
	letterLeft    = "Y" // what we gave back is left to a waiter
	letterUpgrade = "U" // our owner shares the name, and we want it alone
	letterBroken  = "R" // our hold was broken
)

// nobody begins the id of the holder where only remainders are left (state.lua).
const nobody = "~"

func onlyRemainders(id protocol.ID) bool { return strings.HasPrefix(string(id), nobody) }

func (a *reply) hasStatus(letters string) bool {
	return a.status != 0 && strings.IndexByte(letters, a.status) >= 0
}

// holds reports whether the node keeps the name for us.
func (a *reply) holds() bool { return a.hasStatus(letterHeld + letterRefused) }

// mayApply reports whether the request may take effect yet.
func (a *reply) mayApply() bool {
	failure, ok := a.err.(*protocol.Failure)
	return ok && failure.Unknown
}

// text returns what the node answered about the name, in words.
func (a *reply) text() string {
	switch a.status {
	case 'H', 'T', 'Y':
		return "free"
	case 'U':
		return "shared by the same owner"
	case 'R', 'X':
		return "broken"
	case '1':
		return "given back"
	case '0':
		return "not held"
	case 'N':
		return "no such hold"
	case 'B':
		if a.party.Label != "" {
			return fmt.Sprintf("held by %q", a.party.Label)
		}
		return "kept from others" // what a min hold keeps has no holder
	}
	return ""
}

// readAsk reads an answer of ask.lua, and of downgrade.lua. It returns false if that is none of
// ours.
func (a *reply) readAsk(text string) bool {
	f, rest, ok := readHead(text)
	if !ok {
		return false
	}
	a.facts = f
	switch text[0] {
	case 'H':
		ok = a.readTokens(rest)
	case 'B':
		remaining, rest, found := strings.Cut(rest, "|")
		ms, number := wire.Number(remaining)
		a.remaining = time.Duration(ms) * time.Millisecond
		ok = found && number && a.readHolder(rest)
	case 'R':
		a.by = rest
	case 'T', 'Y', 'U':
	default:
		return false
	}
	if ok {
		a.status = text[0]
	}
	return ok
}

func (a *reply) readTokens(text string) bool {
	if len(text) != 32 {
		return false
	}
	var ok1, ok2 bool
	a.first, ok1 = wire.Number(text[:16])
	a.final, ok2 = wire.Number(text[16:])
	return ok1 && ok2 && 0 <= a.first && a.first <= a.final
}

// readHolder reads how many hold and how many wait, with "|" behind each, and the first hold. If
// there is no hold, nothing follows. If only remainders are left, they are counted, and the hold is
// that of nobody.
func (a *reply) readHolder(text string) bool {
	fields := strings.SplitN(text, "|", 3)
	if len(fields) != 3 {
		return false
	}
	holders, ok1 := wire.Number(fields[0])
	waiters, ok2 := wire.Number(fields[1])
	if a.holders, a.waiters = int(holders), int(waiters); !ok1 || !ok2 {
		return false
	}
	if fields[2] == "" {
		return true
	}
	var ok bool
	a.holder, a.token, a.party, ok = holderOf(fields[2])
	if ok && onlyRemainders(a.holder) {
		a.left, a.leftBy = remainderOf(fields[2][holderHead:])
	}
	return ok
}

// readLook reads an answer of look.lua. It returns false if that is none of ours.
func (a *reply) readLook(text string) bool {
	f, rest, ok := readHead(text)
	if !ok || text[0] != 'S' || !a.readHolder(rest) || (a.holders == 0) != (a.holder == "") {
		return false
	}
	if a.facts, a.status = f, 'S'; onlyRemainders(a.holder) {
		a.holder, a.token = nobody, 0 // whether they share does not matter
	}
	return true
}

// readBreak reads an answer of break.lua. It returns false if that is none of ours.
func (a *reply) readBreak(text string) bool {
	f, rest, ok := readHead(text)
	switch {
	case ok && text[0] == 'X' && len(rest) == idSize:
		a.status, a.holder = 'X', protocol.ID(rest)
	case ok && text[0] == '0' && rest == "":
		a.status = 'N'
	default:
		return false
	}
	a.facts = f
	return true
}

// readRenewal reads an answer of renew.lua: a letter for each hold, and then, for each "R", the
// label of the caller that broke the hold, with its length. It returns false if that is none of
// ours.
func (a *reply) readRenewal(text string, holds int) bool {
	f, rest, ok := readHead(text)
	if !ok || len(rest) < holds {
		return false
	}
	a.letters, rest = rest[:holds], rest[holds:]
	for i := range a.letters {
		if a.letters[i] != 'R' {
			continue
		}
		if a.brokeBy == nil {
			a.brokeBy = make(map[int]string)
		}
		if a.brokeBy[i], rest, ok = countedText(rest); !ok {
			return false
		}
	}
	a.facts = f
	return rest == ""
}

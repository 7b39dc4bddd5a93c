package native

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A reading is a reply of a script, taken apart: one of those that ask.lua lists.
type reading struct {
	answer  protocol.Answer
	late    bool
	refused error
}

// parse reads a reply that ask.lua lists; ok is false for every other text.
func (r *resource) parse(op, text string) (out reading, ok bool) {
	if text == "" {
		return out, false
	}
	switch what, rest := text[0], text[1:]; what {
	case 'F':
		out.refused = r.foreign(op, rest)
		return out, true
	case 'f':
		foreign := r.foreign(op, rest)
		foreign.Key = r.keys.queue.(string)
		out.refused = foreign
		return out, true
	case 'M':
		has, ok := wire.Number(rest)
		out.refused = &protocol.Mismatch{Name: r.spec.Name, Have: has, Want: r.spec.Permits}
		return out, ok
	case 'U':
		out.refused = &protocol.Upgrade{Name: r.spec.Name}
		return out, true
	case 'R':
		out.refused = r.broken(rest)
		return out, true
	case 'E':
		out.refused = &protocol.Evicted{Name: r.spec.Name, By: rest}
		return out, true
	case 'L':
		out.late = true
		out.answer.Server, ok = wire.Number(rest)
		return out, ok
	case 'H':
		out.answer, ok = readHeld(rest)
		return out, ok
	case 'Q', 'B':
		out.answer, ok = readBusy(rest)
		if what == 'Q' {
			out.answer.Status = protocol.Queued
		}
		return out, ok
	}
	return out, false
}

// readHeld reads token block|now.
func readHeld(text string) (protocol.Answer, bool) {
	grant, now, ok := strings.Cut(text, "|")
	if !ok || len(grant) < 17 {
		return protocol.Answer{}, false
	}
	token, ok1 := wire.Number(grant[:16])
	block, ok2 := wire.Number(grant[16:])
	server, ok3 := wire.Number(now)
	return protocol.Answer{Status: protocol.Held, Token: token, Block: block, Server: server},
		ok1 && ok2 && ok3 && token > 0 && block > 0
}

// readBusy reads now|remaining|holders|waiters|a hold.
func readBusy(text string) (protocol.Answer, bool) {
	fields := strings.SplitN(text, "|", 5)
	n, ok := numbers(fields, 4)
	if !ok || len(fields) != 5 {
		return protocol.Answer{}, false
	}
	answer := protocol.Answer{
		Status:    protocol.Busy,
		Server:    n[0],
		Remaining: time.Duration(n[1]) * time.Millisecond,
		Holders:   int(n[2]),
		Waiters:   int(n[3]),
	}
	answer.Holder, answer.Token = holder(fields[4])
	answer.Left, answer.By = remainderIn(fields[4])
	if answer.Token <= answer.Server { // a token is the time of its grant, unless the clock was set back
		answer.Since = answer.Token
	}
	return answer, true
}

// holder reads the party behind a ticket, its token and its payload, and the token. A field that
// cannot be read stays empty: it is for people only. A remainder has no holder.
func holder(member string) (protocol.Party, int64) {
	const ticket, token = ticketLength, ticketLength + tokenLength
	if len(member) < token || member[2] == '-' {
		return protocol.Party{}, 0
	}
	first, ok := wire.Number(member[ticket:token])
	if !ok || first < 0 {
		return protocol.Party{}, 0
	}
	p, ok := readPayload(member[token:])
	if !ok {
		return protocol.Party{}, first
	}
	return p.party(member), first
}

// remainderIn reads why there is a remainder, and by whom, from its ticket, token and payload. Of a
// hold it reads nothing.
func remainderIn(member string) (protocol.HoldState, string) {
	const head = ticketLength + tokenLength
	if len(member) < head || member[2] != '-' {
		return 0, ""
	}
	p, ok := readPayload(member[head:])
	if !ok {
		return 0, ""
	}
	return remainderOf(p)
}

// broken is the error for the holder of a hold that a caller with a label broke.
func (r *resource) broken(by string) error { return &protocol.Broken{Name: r.spec.Name, By: by} }

// foreign says what stands at the key, from the first bytes of it.
func (r *resource) foreign(op, is string) *protocol.Foreign {
	return &protocol.Foreign{Op: op, Name: r.spec.Name, Key: r.keys.state.(string), Found: whatStarts(is),
		Want: fmt.Sprintf("%s of format %c", withArticle(r.spec.Kind), format)}
}

func withArticle(k protocol.Kind) string {
	if k == protocol.ReadWrite || k == protocol.Election {
		return "an " + k.String()
	}
	return "a " + k.String()
}

// whatStarts says what starts with these bytes.
func whatStarts(is string) string {
	switch {
	case len(is) != 4 || is[3] != ':' || is[0] < '0' || is[0] > '9':
		return fmt.Sprintf("something that starts with %q", is)
	case is[0] != format:
		return fmt.Sprintf("a lock of format %c", is[0])
	}
	return "held as " + withArticle(protocol.Kind(is[1]))
}

func (r *resource) unreadable(op string, value any) error {
	return &protocol.Failure{Op: op, Name: r.spec.Name, Reason: protocol.Other, Unknown: true,
		Err: errors.Join(errUnreadable, fmt.Errorf("%.100v", value))}
}

var errUnreadable = errors.New("the server's answer is none of ours")

// failure returns the error that a reply to a plain command about these keys tells of; nil if the
// reply is an answer.
func (r *resource) failure(op string, reply wire.Reply, keys ...any) error {
	return r.failureOf(&script{Script: wire.Script{Op: op}}, reply, keys...)
}

func (r *resource) failureOf(s *script, reply wire.Reply, keys ...any) error {
	err := s.Failure(r.spec.Name, reply, keys)
	if err == nil {
		return nil
	}
	var failure *protocol.Failure
	if wire.IsMisrouted(reply) && errors.As(err, &failure) && r.p.servers.KnownSingle() {
		failure.Err = fmt.Errorf("the client takes a cluster for a single server, "+
			"as some do that may not ask for the slots (+cluster|slots): %w", failure.Err)
	}
	return r.at(reply, err)
}

// at names the server that was asked in an error about its reply, if it is known.
func (r *resource) at(reply wire.Reply, err error) error {
	if reply.Node != "" {
		return wire.At(reply.Node, err)
	}
	return wire.At(r.p.config.Node, err)
}

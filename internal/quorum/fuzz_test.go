package quorum

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A liar is a master that tells its facts when it is asked for them, and answers every other script
// alike.
type liar struct {
	honest bool // else the facts are a lie too
	reply  wire.Reply
	asked  atomic.Int64 // how often it was asked for a name
}

func (l *liar) answer(_ context.Context, r wire.Request) wire.Reply {
	<-time.After(time.Millisecond) // rounds without a pace are some thousand a second, not a million
	switch {
	case r.Args[1] == digests["ask"]:
		l.asked.Add(1)
	case l.honest && r.Args[1] == digests["node"]:
		now := time.Now().UnixMicro()
		return wire.Reply{Value: "N" + wire.Digits16(now) + wire.Digits16(now-1e9) + nameless + "1" +
			wire.Digits16(now-1e6) + "1000"}
	}
	return l.reply
}

// openLiars makes a protocol whose masters answer like this, and tell facts if honest.
func openLiars(t *testing.T, honest bool, replies ...wire.Reply) (p *Protocol, all []*liar) {
	var stores []wire.Store
	for _, reply := range replies {
		l := &liar{honest: honest, reply: reply}
		all, stores = append(all, l), append(stores, fake(l.answer))
	}
	return open(t, stores, Config{Prefix: usual, Process: string(id(0)), MaxTTL: time.Second}), all
}

// FuzzReplies: no reply of masters, of whatever shape, makes a client panic or wait for ever, and
// what is read as a grant has a token.
func FuzzReplies(f *testing.F) {
	const (
		facts = "0946684800000000" + "0946684700000000" + "0000000000000000" + "1" + "0946684790000000"
		named = "0946684800000000" + "0946684700000000" + "the-same-server1" + "1" + "0946684790000000"
		id    = "0123456789012345678901"
		token = "0946684800000001"
	)
	for _, text := range []string{"", "H" + facts + token + token, "H" + facts + token, "B" + facts + "1000|1|0|" +
		id + token + "1000f:1:1:0:cow", "B" + facts + "|||",
		"T" + facts, "Y" + facts, "U" + facts, "L" + token, "L", "S" + facts + "1|0|" + id + token + "9:0:1:3:oa:0L",
		"S" + facts + "0|0|", "S" + facts + "-1|9|x",
		"R" + facts + "1", "R" + facts, "R" + facts + "R6:rlabel", "R" + facts + "R0:", "R" + facts + "R9:r",
		"Rrlabel", "R", "1", "0",
		"I" + facts + "11000|1|0:22:76:" + id + "3mx0946684860000" + token + token + token + "60000:0:0:0:", "I" +
			facts + "01000|3|2:is", "I" + facts + "1|",
		"I" + facts + "11000|1|0:99:-1:", "I" + facts + "1", "X" + facts + id, "X" + facts, "0" + facts, "R" + facts +
			"bby", "F1sx", "F", "N" + facts + "1000", "N" + strings.Repeat("9", headSize-1) + "9223372036854775807",
		"H" + strings.Repeat("9", headSize+31), "NOSCRIPT no", "B" + facts +
			"9223372036854775807|9223372036854775807|-1|" + id + token + "9:99999:1:1:"} {
		for shape := range byte(4) {
			f.Add(shape, text, text)
		}
		f.Add(byte(0), text, "H"+facts+token+token)
		f.Add(byte(4), text, text)
	}
	f.Add(byte(4), "0", strings.Repeat("0", headSize+1)) // a memory that began at 0 was told to begin anew for ever
	f.Add(byte(0), "T"+named+"1", "H"+named+token+token)
	f.Add(byte(0), "", "H"+facts+"0946684800000001"+"0346684800000001") // a block that ends before it begins
	f.Fuzz(func(t *testing.T, shape byte, one, other string) {
		synctest.Test(t, func(t *testing.T) {
			shaped := func(text string) wire.Reply {
				switch shape % 4 {
				case 1:
					return wire.Reply{Value: []any{text, int64(len(text)), nil}}
				case 2:
					return wire.Reply{Refused: "ERR " + text}
				case 3:
					return wire.Reply{Refused: text + " "}
				}
				return wire.Reply{Value: text}
			}
			p, _ := openLiars(t, shape%8 < 4, shaped(one), shaped(other), shaped(other))
			r := p.Bind(protocol.Spec{Name: "n", Kind: protocol.Mutex, Owner: "o", Label: "l", Claim: time.Second,
				Life: time.Minute})
			ask := protocol.Ask{Ticket: protocol.Ticket{ID: id, Block: 1}, TTL: time.Second,
				Deadline: time.Now().Add(200 * time.Millisecond)}
			ctx, cancel := context.WithDeadline(t.Context(), ask.Deadline)
			defer cancel()
			judge := func(op string, answer protocol.Answer, err error) {
				if err == nil && answer.Status == protocol.Held && (answer.Token <= 0 || answer.Block <= 0) {
					t.Errorf("%s: %q and %q were read as a grant of the token %d, %d of them", op, one, other,
						answer.Token, answer.Block)
				}
			}
			answer, err := r.Ask(ctx, ask)
			judge("ask", answer, err)
			answer, err = r.Downgrade(ctx, ask)
			judge("downgrade", answer, err)
			_, _ = r.Free(ctx, protocol.FreeRequest{Ticket: ask.Ticket})
			_, _ = r.Look(ctx, &ask.Ticket)
			_ = r.Unwatch(ctx, ask.Ticket)
			_, _ = p.Status(ctx)
			_, _ = p.Break(ctx, "n", protocol.Break{Kind: protocol.Mutex, Token: 1})
			_, _ = p.Inspect(ctx, "n", protocol.Page{Holds: 9})
			reported := 0
			p.Renew(ctx, []protocol.Renewal{{Resource: r, Ticket: ask.Ticket, TTL: time.Second}}, func(int,
				protocol.RenewalAnswer) {
				reported++
			})
			if reported != 1 {
				t.Errorf("one renewal was answered %d times", reported)
			}
		})
	})
}

// Masters that refuse every token, or of which each names another holder, are asked in rounds as
// often as the pace of the Ask allows.
func TestRoundsKeepPace(t *testing.T) {
	const facts = "0946684800000000" + "0946684700000000" + "0000000000000000" + "1" + "0946684790000000"
	busy := "B" + facts + "1000|1|0|012345678901234567890%d094668480000000160000:0:0:0:"
	for name, text := range map[string]string{"every token is refused": "T" + facts,
		"each names another holder": busy} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var replies []wire.Reply
				for i := range 3 {
					replies = append(replies, wire.Reply{Value: strings.ReplaceAll(text, "%d", strconv.Itoa(i))})
				}
				p, all := openLiars(t, true, replies...)
				asking := ask(1)
				asking.Pace = &protocol.Pace{Every: 100 * time.Millisecond}
				began := time.Now()
				if answer, err := mutexOf(p).Ask(t.Context(), asking); err == nil && answer.Status == protocol.Held {
					t.Errorf("got %+v", answer)
				}
				took := time.Since(began)
				if rounds, most := all[0].asked.Load(), 11+int64(took/(100*time.Millisecond)); took < time.Second ||
					rounds > most || rounds < most/2 {
					t.Errorf("%d rounds in %v, want %d at most", rounds, took, most)
				}
			})
		})
	}
}

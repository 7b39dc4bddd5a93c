package native

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// liar is a server that answers every script alike.
type liar struct{ reply wire.Reply }

func (l liar) Do(_ context.Context, requests []wire.Request) []wire.Reply {
	replies := make([]wire.Reply, len(requests))
	for i, request := range requests {
		replies[i] = l.reply
		if request.Args[0] == "TIME" {
			replies[i] = wire.Reply{Value: []any{"1795231125", "887127"}}
		}
	}
	return replies
}

func (liar) Subscribe(context.Context, wire.Sink) (wire.Subscription, error) {
	return nil, context.Canceled
}
func (liar) Describe(context.Context) (wire.Topology, error) { return wire.Topology{}, nil }

// FuzzReplies: no reply of a server, of whatever shape, makes a client panic or wait, and what is
// read as a grant has a token.
func FuzzReplies(f *testing.F) {
	const ticket = "3mx:0123456789012345678901"
	for shape := range byte(6) {
		for _, text := range []string{"", "H17952311258871271|1795231125887127",
			"Q1795231125887127|15000|1|0|" + ticket + "1795231125887127500:1:15000f:2:2:8:chwhy:1:bowner",
			"Rrsomebody", "R", "R8:rsomebody", "R9:rsomebody", "R-1:r",
			"B|||", "L1795231125887127", "F3sx:", "H|", "B1|2|3|4|" + ticket + "1795231125887127500:1:15000:9999:2:0:x",
			"A", "M3", "U", "1", "F", "B1|1795231125887127|-1|1|0|x",
			"B1|2|3|4|" + ticket +
				"17952311258871271:1:1:9223372036854775807:9223372036854775807:9223372036854775807:x",
			"H17952311258871271795231125887127",
			"1795231125887127|s|3|1", "1795231125887127|1|0|3|1|" + ticket + "1795231125887127500:1:1:0:0:0:",
			"NOSCRIPT", "|", "||||||||", "B9|", "F0|"} {
			f.Add(shape, text)
		}
	}
	f.Fuzz(func(t *testing.T, shape byte, text string) {
		reply := wire.Reply{Value: text}
		switch shape % 6 {
		case 1:
			reply.Value = int64(len(text))
		case 2:
			reply.Value = nil
		case 3:
			list := []any{int64(len(text))}
			for part := range strings.SplitSeq(text, "|") {
				list = append(list, part, nil, []any{part})
			}
			reply.Value = list
		case 4:
			reply = wire.Reply{Refused: "ERR " + text}
		case 5:
			reply = wire.Reply{Refused: text + " "}
		}
		p := New(liar{reply}, Config{Prefix: "p", Process: "x", Timeout: time.Second})
		ctx, deadline := t.Context(), time.Now().Add(time.Minute)
		ask := protocol.Ask{Ticket: protocol.Ticket{ID: "0123456789012345678901", Block: 1}, TTL: time.Second,
			Deadline: deadline}
		judge := func(op string, answer protocol.Answer, err error) {
			if err == nil && answer.Status == protocol.Held && (answer.Token <= 0 || answer.Block <= 0) {
				t.Errorf("%s: %q was read as a grant without a token", op, text)
			}
		}
		r := p.Bind(specOf("n"))
		answer, err := r.Ask(ctx, ask)
		judge("ask", answer, err)
		answer, err = r.Downgrade(ctx, ask)
		judge("downgrade", answer, err)
		answers, err := p.AskAll(ctx, []protocol.ResourceAsk{{Resource: r, Ask: ask}})
		if err == nil {
			judge("ask for all", answers[0], nil)
		}
		_, _ = r.Free(ctx, protocol.FreeRequest{Ticket: ask.Ticket})
		_ = r.Resize(ctx, 3, deadline)
		_, _ = r.Look(ctx, &ask.Ticket)
		_ = r.Unwatch(ctx, ask.Ticket)
		reported := 0
		p.Renew(ctx, []protocol.Renewal{{Resource: r, Ticket: ask.Ticket, TTL: time.Second}},
			func(int, protocol.RenewalAnswer) { reported++ })
		if reported != 1 {
			t.Errorf("one renewal was answered %d times", reported)
		}
		l := p.BindLatch(specOf("n"))
		_, _, _ = l.Set(ctx, "0123456789012345678901", 3, time.Second, deadline)
		_, _ = l.CountDown(ctx, "0123456789012345678901", deadline, deadline)
		_, _ = l.Look(ctx, nil)
	})
}

// FuzzMessages: nothing that is published makes a client panic; a grant that is read has a claim, a
// block and a token.
func FuzzMessages(f *testing.F) {
	const id = "0123456789012345678901"
	for _, text := range []string{"", "3G" + id, "3G" + id + "17952311258871271|500|1795231125887127", "3N" + id + "0",
		"3R" + id, "3N" + id + "-1", "3N" + id,
		"3G" + id + "||", "3G" + id + "99999999999999999999999999|9223372036854775807|-5", "3X" + id + "1",
		"1G" + id + "17952311258871271|500|1795231125887127", "3G" + id + "|||"} {
		f.Add("p:@x", text)
		f.Add("p:{1}:@x", text)
		f.Add("p:@y", text)
	}
	f.Fuzz(func(t *testing.T, channel, text string) {
		sink := &hearsay{}
		messageReader{suffix: ":@x", sink: sink}.Message(channel, text)
		if sink.heard && (!strings.HasSuffix(channel, ":@x") || text[0] != format) {
			t.Errorf("%q was heard on %q", text, channel)
		}
		if g := sink.grant; g != nil && (g.Token <= 0 || g.Block <= 0 || g.Claim <= 0 || len(g.ID) != len(id)) {
			t.Errorf("%q was read as %+v", text, g)
		}
		if sink.after < 0 {
			t.Errorf("%q is a nudge for %v ago", text, sink.after)
		}
	})
}

type hearsay struct {
	heard bool
	grant *protocol.Grant
	after time.Duration
}

func (h *hearsay) Granted(g protocol.Grant)                 { h.heard, h.grant = true, &g }
func (h *hearsay) Nudge(_ protocol.ID, after time.Duration) { h.heard, h.after = true, after }
func (h *hearsay) Broken(protocol.ID)                       { h.heard = true }
func (h *hearsay) Recall(protocol.ID)                       { h.heard = true }
func (h *hearsay) Gap()                                     {}

// FuzzInspections: no reply of a server makes an Inspect panic, and none is told with more places
// than there are, or with a hold of no state.
func FuzzInspections(f *testing.F) {
	const id, token, payload = "0123456789012345678901", "1795231125887127",
		"500:1:15000f:1:2:17:pxowhy:1:bby:2:me12:label"
	f.Add("1795231125887127|a|3mx:"+id+token+payload+"|15000|0|0|0|q|3mx:|1|0", "",
		"3mx:"+id+payload+"|1795231125887127|1795231140000|1", "")
	f.Add("1795231125887127|s|3rs:|0|1|0|0|q|3rs:|0|1", "3rs:"+id+payload+"|11795231140000|"+token, "",
		"3rx:"+id+"|1795231125887127||")
	f.Add("1795231125887127|a|3l-:"+id+"s3:30000|30000|0|0|0||||", "", "", "")
	f.Add("1|F|3mx:|0|0|0|0|T|||0", "|||", "||||", "1|2|3|4")
	f.Add("-1|a||-1|-1|-1|-1|q||-1|-1", "x|y|z", "a|b|c|d", "a|1|2|d")
	f.Fuzz(func(t *testing.T, head, holds, open, shut string) {
		list := func(text string) []any {
			out := []any{}
			if text != "" {
				for part := range strings.SplitSeq(text, "|") {
					out = append(out, part)
				}
			}
			return out
		}
		reply := append(list(head), list(holds), list(open), list(shut))
		p := New(liar{wire.Reply{Value: reply}}, Config{Prefix: "p", Process: "x", Timeout: time.Second})
		in, err := p.Inspect(t.Context(), "n", protocol.Page{Holds: 2, Queue: 2})
		if err != nil {
			return
		}
		if len(in.Queue) > (len(list(open))+len(list(shut)))/4 {
			t.Errorf("%d places of %q and %q", len(in.Queue), open, shut)
		}
		for _, h := range in.Holds {
			if h.State < protocol.HoldTaken || h.State > protocol.HoldBroken {
				t.Errorf("state %d of %q", h.State, holds)
			}
		}
	})
}

func TestReadPayload(t *testing.T) {
	const channel, extras = "pmy:prefix:{12}:@host/17/random", "why:1:bkeep:3:100x:4:a:b:"
	p, ok := readPayload(fmt.Sprintf("500/2/7:1000:15000f:%d:2:%d:%sow%sthe:label", len(channel), len(extras), channel,
		extras))
	if !ok || p.claim != 500*time.Millisecond || p.weight != 2 || p.block != 1000 || p.ttl != 15*time.Second ||
		!p.fixed || p.channel != channel ||
		p.owner != "ow" || p.label != "the:label" {
		t.Errorf("%+v, %v", p, ok)
	}
	for name, want := range map[string]string{"why": "b", "keep": "100", "x": "a:b:", "none": ""} {
		if got := p.extra(name); got != want {
			t.Errorf("extra %q is %q, want %q", name, got, want)
		}
	}
	for channel, want := range map[string]string{"pmy:prefix:@host/17/random": "host/17/random",
		"smy:prefix:{12}:@host/17/random": "host/17/random",
		"":                                "", "p": "", "pother:@host/17/random": "", "pmy:prefix:@ticket/0123": "",
		"smy:prefix:{x:@host": ""} {
		if got := (payload{channel: channel}).process("my:prefix"); got != want {
			t.Errorf("channel %q is of %q, want %q", channel, got, want)
		}
	}
}

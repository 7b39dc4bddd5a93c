package native

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

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

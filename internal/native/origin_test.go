package native

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

var someEvidence = []protocol.Evidence{
	{Name: "a:12+", ID: "1234567890123456789012"},
	{Name: strings.Repeat("\x00|", 512), ID: "-_34567890123456789012"},
}

// Another process names a hold as the first one does: by the same payload, wherever it listens.
func TestOriginKeepsThePayload(t *testing.T) {
	answers := liar{wire.Reply{}} // to anything but TIME
	for name, ticket := range map[string]protocol.Ticket{
		"usual":       {ID: "1234567890123456789012", Block: 1},
		"a block":     {ID: "1234567890123456789012", Block: 1000},
		"no messages": {ID: "1234567890123456789012", Block: 1, NoMessages: true},
		"evidence":    {ID: "1234567890123456789012", Block: 1, Under: someEvidence, More: true},
		"a trace":     {ID: "1234567890123456789012", Block: 1, Trace: "~1+2:"},
		"retained":    {ID: "1234567890123456789012", Block: 1000, Retain: true, Trace: "r"},
		"both":        {ID: "1234567890123456789012", Block: 1, Under: someEvidence, Trace: "00-1-2-01"},
	} {
		first := New(answers, Config{Prefix: "p", Process: "x", Timeout: time.Second}).bind(specOf("n"))
		second := New(answers, Config{Prefix: "p", Process: "y", Timeout: time.Second}).bind(specOf("n"))
		adopted, err := second.Adopt(context.Background(), ticket, first.Origin(ticket, 42), true)
		if err != nil || adopted.Granted != 42 || adopted.Server == 0 || adopted.Sent.IsZero() {
			t.Errorf("%s: %+v, %v", name, adopted, err)
		}
		if want, got := first.payload(ticket), second.payload(adopted.Ticket); got != want {
			t.Errorf("%s: the payload is %q, want %q", name, got, want)
		}
		if again := second.Origin(adopted.Ticket, 42); again != first.Origin(ticket, 42) {
			t.Errorf("%s: the origin is %q in the second process", name, again)
		}
	}
}

func TestOriginOfAnotherFormat(t *testing.T) {
	r := New(nil, Config{Prefix: "p", Process: "x"}).bind(specOf("n"))
	ticket := protocol.Ticket{ID: "1234567890123456789012", Block: 1}
	for _, origin := range []protocol.Origin{"", "m42", "q31,2,3", "n442:pchannel", "n3", "n342", "n3:pchannel",
		"n3x:pchannel", "n342:",
		"n342+:pchannel", "n342+1:pchannel", "n342+-1:pchannel", "n342+99:pchannel", "n342+0:pchannel",
		"n342+23:12345678901234567890121:",
		"n342~:pchannel", "n342~0:pchannel", "n342~99:pchannel", "n342~-1:pchannel", "n342~8+1:pchannel"} {
		if _, err := r.Adopt(context.Background(), ticket, origin, false); !errors.Is(err, protocol.ErrOrigin) {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

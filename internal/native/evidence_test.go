package native

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

var someEvidence = []protocol.Evidence{
	{Name: "a:12+", ID: "1234567890123456789012"},
	{Name: strings.Repeat("\x00|", 512), ID: "-_34567890123456789012"},
}

func TestEvidenceIsReadAsItWasWritten(t *testing.T) {
	for n := range len(someEvidence) + 1 {
		for _, more := range []bool{false, true} {
			ticket := protocol.Ticket{Under: someEvidence[:n], More: more}
			under, readMore := readEvidence(evidence(ticket))
			if !slices.Equal(under, ticket.Under) || readMore != more {
				t.Errorf("%d leases, more: %v: read %v, %v", n, more, under, readMore)
			}
		}
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add(evidence(protocol.Ticket{Under: someEvidence, More: true}))
	f.Add("123456789012345678901299:x")
	f.Fuzz(func(t *testing.T, text string) {
		under, more := readEvidence(text)
		if again := evidence(protocol.Ticket{Under: under, More: more}); more && len(again) > len(text) {
			t.Errorf("read %q as %q", text, again)
		}
	})
}

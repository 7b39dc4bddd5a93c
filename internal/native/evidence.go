package native

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

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

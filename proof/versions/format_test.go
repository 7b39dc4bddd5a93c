package versions

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// The last version of the format before refuses a lock of this one and its tickets, says so, and
// leaves the key as it was; and the other way round.
func TestVersionsOfAnotherFormatRefuse(t *testing.T) {
	harness.Long(t)
	now, before := build(t, "now", repositoryRoot(t), false), build(t, "the format before",
		unpackCommit(t, formatBefore), false)
	inBothOrders(t, now, before, checkRefusals)
}

// checkRefusals lets a guest meet what a holder of another format has.
func checkRefusals(t *testing.T, holder, guest *peer, masters []*redisserver.Server) {
	t.Helper()
	ticket := holder.detachTicket("m")
	guest.mustFail("ticket", Request{Do: "attach", Ticket: ticket, Lease: "never"})
	holder.mustDo(Request{Do: "attach", Ticket: ticket, Lease: "l"})
	before := listContent(t, masters, "m")
	for _, do := range []string{"try", "lock"} {
		guest.mustFail("store foreign key", Request{Do: do, Kind: "mutex", Name: "m", Lease: "never"})
	}
	if got := guest.mustDo(Request{Do: "inspect", Name: "m"}); got.Foreign == "" {
		t.Errorf("%s inspects a lock of another format, and does not say so", guest.name)
	}
	if after := listContent(t, masters, "m"); after != before {
		t.Errorf("the keys changed from\n%s\nto\n%s", before, after)
	}
	holder.mustDo(Request{Do: "check", Lease: "l"})
	holder.mustDo(Request{Do: "release", Lease: "l"})
	// The name is free for both now, one after the other.
	guest.mustDo(Request{Do: "lock", Kind: "mutex", Name: "m", Lease: "now"})
	holder.mustFail("store foreign key", Request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
	guest.mustDo(Request{Do: "release", Lease: "now"})
}

func (p *peer) detachTicket(name string) string {
	p.Helper()
	p.mustDo(Request{Do: "lock", Kind: "mutex", Name: name, Lease: "detached"})
	return p.mustDo(Request{Do: "detach", Lease: "detached"}).Ticket
}

// listContent returns all keys with what identifies the hold in them. Renewals change what stands
// behind it.
func listContent(t *testing.T, masters []*redisserver.Server, name string) (text string) {
	t.Helper()
	const ticket = 26
	for _, srv := range masters {
		text += fmt.Sprintln(harness.Must(t, srv, "KEYS", "versions:{"+name+"}*"),
			harness.Must(t, srv, "KEYS", "versions:{%quorum}*"+name))
		if len(masters) > 1 {
			text += fmt.Sprintln(harness.Must(t, srv, "HKEYS", "versions:{%quorum}:"+name))
			continue
		}
		value, _ := harness.Must(t, srv, "GET", "versions:{"+name+"}").(string)
		text += value[:min(ticket, len(value))]
	}
	return text
}

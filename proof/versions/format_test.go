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
	now, before := build(t, "now", top(t), false), build(t, "the format before", filesOf(t, formatBefore), false)
	for name, servers := range map[string]int{"one server": 1, "quorum of three": 3} {
		for direction, pair := range map[string][2]version{"the format before second": {now, before}, "the format before first": {before, now}} {
			t.Run(name+", "+direction, func(t *testing.T) {
				var masters []*redisserver.Server
				for range servers {
					masters = append(masters, redisserver.Start(t))
				}
				refuse(t, pair[0].run(t, masters...), pair[1].run(t, masters...), masters)
			})
		}
	}
}

// refuse lets a guest meet what a holder of another format has.
func refuse(t *testing.T, holder, guest *peer, masters []*redisserver.Server) {
	t.Helper()
	ticket := holder.detached("m")
	guest.refused("ticket", request{Do: "attach", Ticket: ticket, Lease: "never"})
	holder.ask(request{Do: "attach", Ticket: ticket, Lease: "l"})
	before := content(t, masters, "m")
	for _, do := range []string{"try", "lock"} {
		guest.refused("store foreign key", request{Do: do, Kind: "mutex", Name: "m", Lease: "never"})
	}
	if got := guest.ask(request{Do: "inspect", Name: "m"}); got.Foreign == "" {
		t.Errorf("%s inspects a lock of another format, and does not say so", guest.name)
	}
	if after := content(t, masters, "m"); after != before {
		t.Errorf("the keys changed from\n%s\nto\n%s", before, after)
	}
	holder.ask(request{Do: "check", Lease: "l"})
	holder.ask(request{Do: "release", Lease: "l"})
	// The name is free for both now, one after the other.
	guest.ask(request{Do: "lock", Kind: "mutex", Name: "m", Lease: "now"})
	holder.refused("store foreign key", request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
	guest.ask(request{Do: "release", Lease: "now"})
}

// detached is the ticket of a mutex that this peer locked, and detached.
func (p *peer) detached(name string) string {
	p.Helper()
	p.ask(request{Do: "lock", Kind: "mutex", Name: name, Lease: "detached"})
	return p.ask(request{Do: "detach", Lease: "detached"}).Ticket
}

// content is all keys with what identifies the hold in them. Renewals change what stands behind it.
func content(t *testing.T, masters []*redisserver.Server, name string) (text string) {
	t.Helper()
	const ticket = 26
	for _, srv := range masters {
		text += fmt.Sprintln(harness.Must(t, srv, "KEYS", "versions:{"+name+"}*"), harness.Must(t, srv, "KEYS", "versions:{%quorum}*"+name))
		if len(masters) > 1 {
			text += fmt.Sprintln(harness.Must(t, srv, "HKEYS", "versions:{%quorum}:"+name))
			continue
		}
		value, _ := harness.Must(t, srv, "GET", "versions:{"+name+"}").(string)
		text += value[:min(ticket, len(value))]
	}
	return text
}

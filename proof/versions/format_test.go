package versions

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// The earlier version with another number of the wire format refuses a lock of this one, says so,
// and leaves the key as it was; and the other way round.
func TestVersionsOfAnotherFormatRefuse(t *testing.T) {
	dir, _ := earlierFiles(t)
	renumber(t, dir)
	now, other := build(t, "now", top(t), false), build(t, "another format", dir, false)
	for direction, pair := range map[string][2]version{"another format second": {now, other}, "another format first": {other, now}} {
		t.Run(direction, func(t *testing.T) {
			srv := redisserver.Start(t)
			holder, guest := pair[0].run(t, srv), pair[1].run(t, srv)
			holder.ask(request{Do: "lock", Kind: "mutex", Name: "m", Lease: "l"})
			before := content(t, srv, "m")
			for _, do := range []string{"try", "lock"} {
				guest.refused("store foreign key", request{Do: do, Kind: "mutex", Name: "m", Lease: "never"})
			}
			if got := guest.ask(request{Do: "inspect", Name: "m"}); got.Foreign == "" {
				t.Errorf("%s inspects a lock of another format, and does not say so", guest.name)
			}
			if after := content(t, srv, "m"); after != before {
				t.Errorf("the key changed from\n%s\nto\n%s", before, after)
			}
			holder.ask(request{Do: "check", Lease: "l"})
			holder.ask(request{Do: "release", Lease: "l"})
			// The name is free for both now, one after the other.
			guest.ask(request{Do: "lock", Kind: "mutex", Name: "m", Lease: "now"})
			holder.refused("store foreign key", request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
			guest.ask(request{Do: "release", Lease: "now"})
		})
	}
}

// content is the ticket of the hold, with its format. Renewals change what stands behind it.
func content(t *testing.T, srv *redisserver.Server, name string) string {
	t.Helper()
	const ticket = 22 // as long as the text of an id
	value, ok := harness.Must(t, srv, "GET", "versions:{"+name+"}").(string)
	if !ok || len(value) < ticket {
		t.Fatalf("the key of %s has %q", name, value)
	}
	return value[:ticket]
}

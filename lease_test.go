package holdfast_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A lease in a log has its name and token, and a lease that is none says so.
func TestLeaseString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		client, err := holdfast.NewOn(server.Connect("p"), nil)
		must(t, err)
		lease, err := client.Mutex("order:42").Lock(t.Context())
		must(t, err)
		want := fmt.Sprintf(`lease of "order:42" with token %d`, lease.Token())
		if got := fmt.Sprint(lease); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		must(t, lease.Release(t.Context()))
		must(t, client.Close())
		var none *holdfast.Lease
		if got := fmt.Sprint(none, new(holdfast.Lease)); got != "no lease no lease" {
			t.Errorf("got %q of no lease", got)
		}
	})
}

package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// The page tells which masters of a quorum count, and why the others do not: without a name too,
// with one master down, and without a majority.
func TestMastersOfQuorum(t *testing.T) {
	b := newViewer(t)
	var masters []*redisserver.Server
	var addrs []string
	for range 5 {
		masters = append(masters, redisserver.Start(t))
		addrs = append(addrs, masters[len(masters)-1].Addr())
	}
	b.serve(b.quorum(holdfast.Config{Label: "operator"}, addrs...))
	b.run(chromedp.Navigate(b.url + "#servers"))
	b.shows("0 of 5 masters count, and a lock needs 3: see why")
	b.shows("its memory began")
	b.picture("quorum-young")
	b.until(`document.querySelectorAll("#panel tbody tr").length === 5`)

	b.serve(b.quorum(holdfast.Config{Label: "operator", TrustNewNodes: true}, addrs...))
	b.open("#servers")
	b.shows("5 of 5 masters count. A lock needs 3.")
	b.lock(b.quorum(holdfast.Config{Label: "billing", TrustNewNodes: true}, addrs...), "invoice:1001")
	masters[2].Kill()
	b.shows("4 of 5 masters count. A lock needs 3.")
	b.picture("quorum")
	b.open("#lock=invoice%3A1001")
	b.shows("4 of 5 masters count. A lock needs 3.")
	cells := b.text(`[...document.querySelectorAll("#panel td[data-title='Held by']")].map(e => e.textContent).join(" ")`)
	if strings.Count(cells, "billing") < 3 || !strings.Contains(cells, "?") {
		t.Errorf("the masters are held by %q", cells)
	}
	b.picture("quorum-name")
	masters[3].Kill()
	masters[4].Kill()
	b.shows("2 of 5 masters count, and a lock needs 3, so this is older")
	b.until(`document.querySelector("nav .alarm").textContent === "Servers"`)
	b.run(chromedp.Click("#away a"))
	b.shows("2 of 5 masters count. A lock needs 3.")
	b.picture("quorum-away")
	b.right()
}

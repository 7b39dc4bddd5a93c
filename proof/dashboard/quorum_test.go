package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// quorum returns a client of independent masters.
func (b *viewer) quorum(label string, trust bool, masters []*redisserver.Server) *holdfast.Client {
	b.Helper()
	var stores []store.Store
	for _, m := range masters {
		rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
		b.Cleanup(func() { _ = rdb.Close() })
		stores = append(stores, redisstore.New(rdb))
	}
	client, err := holdfast.NewQuorum(stores, &holdfast.Config{Label: label, TrustNewNodes: trust})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}

// The page tells which masters of a quorum count, and why the others do not: without a name too,
// with one master down, and without a majority.
func TestMastersOfQuorum(t *testing.T) {
	b := newViewer(t)
	var masters []*redisserver.Server
	for range 5 {
		masters = append(masters, redisserver.Start(t))
	}
	b.serve(b.quorum("operator", false, masters))
	b.run(chromedp.Navigate(b.url + "#servers"))
	b.shows("0 of 5 masters count, and a lock needs 3: see why")
	b.shows("its memory began")
	b.picture("quorum-young")
	b.until(b.browser, `document.querySelectorAll("#panel tbody tr").length === 5`)

	b.serve(b.quorum("operator", true, masters))
	b.open("#servers")
	b.shows("5 of 5 masters count. A lock needs 3.")
	b.lock(b.quorum("billing", true, masters), "invoice:1001")
	masters[2].Kill()
	b.shows("4 of 5 masters count. A lock needs 3.")
	b.picture("quorum")
	b.open("#lock=invoice%3A1001")
	b.shows("4 of 5 masters count. A lock needs 3.")
	cells := b.text(b.browser,
		`[...document.querySelectorAll("#panel td[data-title='Held by']")].map(e => e.textContent).join(" ")`)
	if strings.Count(cells, "billing") < 3 || !strings.Contains(cells, "?") {
		t.Errorf("the masters are held by %q", cells)
	}
	b.picture("quorum-name")
	masters[3].Kill()
	masters[4].Kill()
	b.shows("2 of 5 masters count, and a lock needs 3, so this is older")
	b.run(chromedp.Click("#away a"))
	b.shows("2 of 5 masters count. A lock needs 3.")
	b.picture("quorum-away")
	b.right()
}

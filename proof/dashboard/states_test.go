package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/testing/states"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// whole fails the test if the page shows a value that is not there.
func (b *viewer) whole(where string) {
	b.Helper()
	const bad = `(document.body.innerText.match(/.*(undefined|\bNaN\b|\bnull\b|\[object|Invalid Date).*/g) ?? []).join("; ")`
	if got := b.text(bad); got != "" {
		b.Errorf("%s: the page shows %s", where, got)
	}
}

// Of names in every state, and of every change, the page shows nothing that is not there.
func TestEveryStateIsShownWhole(t *testing.T) {
	b := newViewer(t)
	mini, now := miniredis.RunT(t), time.Now()
	mini.SetTime(now) // its clock stands still
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	command := func(args ...any) { // of an operator
		t.Helper()
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	client := func(config *holdfast.Config, dial states.Dial) *holdfast.Client {
		return harness.Locker(t, mini.Addr(), config, func(o *redis.Options) { o.Dialer, o.DialerRetries = dial, 1 })
	}
	b.serve(client(&holdfast.Config{Label: "operator"}, nil))
	b.open("")
	made := states.Make(t, states.Server{Client: client, Command: command,
		Ahead: func(step time.Duration) { now = now.Add(step); mini.SetTime(now) }})
	b.until(fmt.Sprintf(`document.getElementById("count").textContent.startsWith("%d of")`, len(made)))
	for _, name := range slices.Sorted(maps.Keys(made)) {
		b.goTo("lock=" + url.PathEscape(name))
		b.shows("Seen since this page was opened")
		b.until(fmt.Sprintf(`document.querySelector("#panel p span").textContent === %q`, made[name]))
		b.whole(name)
	}
	for _, panel := range []string{"", "changes", "servers", "deadlocks"} {
		b.goTo(panel)
		b.whole("#" + panel)
	}
	b.run(chromedp.Evaluate(`location.hash = ""; [...document.querySelectorAll("tr.row button")][0].click()`, nil))
	b.shows(", 1 broken")
	if names := b.names(); !strings.HasPrefix(names, "order:42 read broken ") { // which blocks nobody
		t.Errorf("what is waited for does not come first, then what is broken: %s", names)
	}
	for name, text := range map[string]string{"kept place of a semaphore": "0 of 2 permits taken",
		"open": "0 to count down", "permits": "3 of 5 permits taken"} {
		b.goTo("lock=" + url.PathEscape(name))
		b.shows(text)
	}
	b.open("")
	command("FLUSHALL")
	b.goTo("changes")
	b.shows("freed")
	b.whole("freed")
	b.right()
}

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
	b.shows("0 of 5 masters usable, and a lock needs 3: see why")
	b.shows("its memory began")
	b.picture("quorum-young")
	b.until(`document.querySelectorAll("#panel tbody tr").length === 5`)

	b.serve(b.quorum(holdfast.Config{Label: "operator", TrustNewNodes: true}, addrs...))
	b.open("#servers")
	b.shows("5 of 5 masters usable. A lock needs 3.")
	b.lock(b.quorum(holdfast.Config{Label: "billing", TrustNewNodes: true}, addrs...), "invoice:1001")
	masters[2].Kill()
	b.shows("4 of 5 masters usable. A lock needs 3.")
	b.picture("quorum")
	b.open("#lock=invoice%3A1001")
	b.shows("4 of 5 masters usable. A lock needs 3.")
	cells := b.text(`[...document.querySelectorAll("#panel td[data-title='Held by']")].map(e => e.textContent).join(" ")`)
	if strings.Count(cells, "billing") < 3 || !strings.Contains(cells, "?") {
		t.Errorf("the masters are held by %q", cells)
	}
	b.picture("quorum-name")
	masters[3].Kill()
	masters[4].Kill()
	b.shows("2 of 5 masters usable, and a lock needs 3, so this is older")
	b.until(`document.querySelector("nav .alarm").textContent === "Servers"`)
	b.run(chromedp.Click("#away a"))
	b.shows("2 of 5 masters usable. A lock needs 3.")
	b.picture("quorum-away")
	b.right()
}

// Pages that do not read cost the program a part of the list each, and not a copy, and their
// streams end.
func TestPagesThatDoNotReadOnRealConnections(t *testing.T) {
	harness.Long(t)
	const names, pages = 5_000, 99
	server := redisserver.Start(t)
	client := func(label string) *holdfast.Client {
		return harness.Locker(t, server.Addr(), &holdfast.Config{Label: label})
	}
	// A byte of the label is six in JSON.
	lockMany(t, client(strings.Repeat("\x01", 1000)), names, holdfast.WithTTL(5*time.Minute), holdfast.WithoutRenewal())

	page := dashboard.Handler(client("operator"), nil)
	var streams atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		defer streams.Add(-1)
		page.ServeHTTP(w, r)
	}))
	defer site.Close()
	defer site.CloseClientConnections()
	open := func() net.Conn {
		conn, err := net.Dial("tcp", site.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\n\r\n", site.Listener.Addr()); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	most := func(during time.Duration) (bytes uint64) {
		for end := time.Now().Add(during); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			bytes = max(bytes, m.HeapInuse)
		}
		return bytes
	}
	reader := open()
	defer reader.Close()
	list := make(chan int, 1)
	go func() {
		n := 0
		events := bufio.NewReader(reader)
		for whole := false; ; {
			line, err := events.ReadString('\n')
			if whole = whole || strings.Contains(line, `"whole":true`); whole {
				n += len(line)
			}
			if err != nil || whole && strings.Contains(line, `"part":false`) {
				break
			}
		}
		list <- n
		_, _ = io.Copy(io.Discard, events)
	}()
	size := <-list
	one := most(10 * time.Second)
	for range pages {
		conn := open()
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	all := most(harness.Patience) // the streams end meanwhile
	t.Logf("the list has %d MB; in use are at most %d MB with one page that reads, and %d MB with %d beside it that "+
		"do not", size>>20, one>>20, all>>20, pages)
	if all > one+pages<<20 {
		t.Errorf("%d pages cost %d MB", pages, (all-one)>>20)
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("%d streams go on, and 1 reads", n)
	}
}

// lockMany takes as many names, in the order of their numbers.
func lockMany(t *testing.T, client *holdfast.Client, names int, options ...holdfast.Option) {
	t.Helper()
	var work errgroup.Group
	work.SetLimit(16)
	for i := range names {
		work.Go(func() error {
			_, err := client.Mutex(fmt.Sprintf("item:%05d", i), options...).TryLock(t.Context())
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
}

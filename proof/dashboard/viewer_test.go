package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}

// A viewer is a browser that looks at the dashboard of a server.
type viewer struct {
	*testing.T
	server  *redisserver.Server
	url     string
	allow   bool
	browser context.Context
}

// newViewer starts a browser: the test needs one, and judges times.
func newViewer(t *testing.T) *viewer {
	t.Helper()
	harness.Long(t)
	b := &viewer{T: t, server: redisserver.Start(t), allow: true}
	b.serve(b.client("operator"))
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 760))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(stop)
	b.browser = b.tab(alloc)
	return b
}

// serve serves the dashboard of a client, which the next page opens.
func (b *viewer) serve(client *holdfast.Client) {
	b.Helper()
	mux := http.NewServeMux()
	handler := dashboard.Handler(client, &dashboard.Options{Authorize: func(*http.Request) bool { return b.allow }})
	mux.Handle("/deep/locks/", http.StripPrefix("/deep/locks", handler))
	site := httptest.NewServer(mux)
	b.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	b.url = site.URL + "/deep/locks/"
}

// tab opens a tab; the first one starts the browser.
func (b *viewer) tab(parent context.Context) context.Context {
	b.Helper()
	tab, end := chromedp.NewContext(parent)
	b.Cleanup(end)
	if err := chromedp.Run(tab); err != nil { // not under a deadline, which would end the browser
		b.Fatal(err)
	}
	return tab
}

func (b *viewer) client(label string) *holdfast.Client {
	b.Helper()
	return harness.Locker(b.T, b.server.Addr(), &holdfast.Config{Label: label})
}

func (b *viewer) quorum(config holdfast.Config, addrs ...string) *holdfast.Client {
	b.Helper()
	var stores []store.Store
	for _, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
		b.Cleanup(func() { _ = rdb.Close() })
		stores = append(stores, redisstore.New(rdb))
	}
	client, err := holdfast.NewQuorum(stores, &config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}

// lock takes a name until the end of the test.
func (b *viewer) lock(client *holdfast.Client, name string) *holdfast.Lease {
	b.Helper()
	lease, err := client.Mutex(name).Lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return lease
}

func (b *viewer) run(actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.browser, harness.Patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// text returns the value of an expression in the page.
func (b *viewer) text(expression string) string {
	b.Helper()
	var out string
	b.run(chromedp.Evaluate("String("+expression+")", &out))
	return out
}

// until waits until an expression in the page is true, and returns how long that took.
func (b *viewer) until(expression string) time.Duration {
	b.Helper()
	for begin := time.Now(); ; <-time.After(10 * time.Millisecond) {
		if b.text(expression) == "true" {
			return time.Since(begin)
		}
		if time.Since(begin) > harness.Patience {
			b.Fatalf("the page never has %s. It has:\n%s", expression, b.text("document.body.innerText"))
		}
	}
}

// shows waits until the page shows a text.
func (b *viewer) shows(text string) time.Duration {
	b.Helper()
	return b.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// listen notes errors of the page, which a refused script is too.
const listen = `window.wrong = []; addEventListener("error", e => wrong.push(e.message)); addEventListener("unhandledrejection", e => wrong.push(String(e.reason)));
	addEventListener("securitypolicyviolation", e => wrong.push(e.violatedDirective)); window.alert = t => wrong.push("alert " + t)`

func (b *viewer) open(hash string) {
	b.Helper()
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(b.url+hash), chromedp.WaitReady("#locks"),
		chromedp.Evaluate(listen, nil))
	b.until(`document.getElementById("live").textContent.startsWith("live")`)
}

// goTo changes the hash of the page that is open.
func (b *viewer) goTo(hash string) {
	b.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf("location.hash = %q", hash), nil))
}

// right fails the test if the page had an error.
func (b *viewer) right() {
	b.Helper()
	if wrong := b.text(`window.wrong.join("; ")`); wrong != "" {
		b.Errorf("errors of the page: %s", wrong)
	}
}

func (b *viewer) picture(name string) {
	b.Helper()
	dir := os.Getenv("HOLDFAST_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, "dashboard-"+name+".png"), png, 0o644); err != nil {
		b.Fatal(err)
	}
}

// rows is how many rows of the list are elements.
const rows = `document.querySelectorAll("tr.row").length`

// names returns those that the list shows, in order.
func (b *viewer) names() string {
	b.Helper()
	return strings.TrimSpace(b.text(`[...document.querySelectorAll("tr.row .name button")].map(e => e.textContent).join(" ")`))
}

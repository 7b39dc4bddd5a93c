package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// populate makes some of everything: a chain of waits, a hold that is broken, a semaphore and an
// election.
func populate(b *viewer) {
	b.Helper()
	b.lock(b.client("billing"), "invoice:1001")
	b.lock(b.client("reports"), "report:daily")
	b.lock(b.client("backup"), "archive:2026")
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	hold := func(client *holdfast.Client, first, then string) {
		lease, err := client.Mutex(first, holdfast.WithDeadlockCheck()).Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		under, end := context.WithCancel(leased.Context(lease))
		context.AfterFunc(ctx, end)
		waiting.Go(func() { _, _ = client.Mutex(then, holdfast.WithDeadlockCheck()).Lock(under) })
	}
	hold(b.client("mailer"), "mail:42", "invoice:1001")
	hold(b.client("ledger"), "ledger:7", "mail:42")
	hold(b.client("audit"), "audit:9", "ledger:7")
	broken, err := b.client("pricing").Mutex("price:update", holdfast.WithTTL(time.Minute)).Lock(ctx)
	if err == nil {
		err = b.client("operator").Break(ctx, "price:update", broken.Token())
	}
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.client("pool").Semaphore("downloads", 5).Acquire(ctx, 3); err != nil {
		b.Fatal(err)
	}
	if _, err := b.client("node-a").Election("scheduler").Campaign(ctx); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cancel(); waiting.Wait() })
}

func TestListSearchAndDetail(t *testing.T) {
	b := newViewer(t)
	b.open("")
	b.shows("No name is held or waited for.")
	b.until(`["top", "filters", "scroll"].every(id => document.getElementById(id).hidden)`)
	populate(b)
	b.shows("invoice:1001")
	b.shows("scheduler")
	b.shows("leader node-a")
	b.shows("3/5 semaphore")
	b.shows("9 names, 3 contended, longest wait")
	b.shows(", 1 broken")
	b.until(`document.querySelectorAll(".cause").length === 1 &&
		/^invoice:1001, held by billing, .+, blocks 3 waiters in 3 names for /.test(document.querySelector(".cause").ariaLabel)`)
	b.shows("blocks 3")
	b.shows("behind invoice:1001")
	b.picture("list")
	b.run(chromedp.SendKeys("#search", "ledger"))
	b.until(rows + " === 1")
	if got := b.names(); got != "ledger:7" {
		t.Errorf("the search finds %s", got)
	}
	b.run(chromedp.SendKeys("#search", "?"))
	b.shows("No name matches the filters.")
	b.run(chromedp.Click("#clear"))
	b.until(rows + ` === 9 && document.activeElement.id === "search"`)
	b.run(chromedp.Evaluate(`document.getElementById("contended").click();
		document.querySelector("[data-sort=name]").click()`, nil))
	b.until(rows + " === 3")
	if got := b.names(); got != "invoice:1001 ledger:7 mail:42" {
		t.Errorf("contended are %s", got)
	}
	b.run(chromedp.Evaluate(`document.getElementById("contended").click(); document.querySelector("[data-sort=wait]").click()`, nil))
	b.until(rows + " === 9")
	if got := b.names(); !strings.HasPrefix(got, "invoice:1001 ledger:7 mail:42") {
		t.Errorf("by waiters: %s", got)
	}
	// By keyboard: down to the second row, and into it.
	b.run(chromedp.Focus("#scroll"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown),
		chromedp.KeyEvent(kb.Enter))
	b.until(`location.hash === "#lock=ledger%3A7"`)
	b.shows("The root cause: billing holds invoice:1001")
	b.until(`document.activeElement.id === "title"`)
	tree := b.text(`document.querySelector(".tree").textContent`)
	if at := []int{strings.Index(tree, "ledger:7"), strings.Index(tree, "mail:42"),
		strings.Index(tree, "invoice:1001 for")}; at[0] < 0 || at[0] > at[1] || at[1] > at[2] {
		t.Errorf("the tree is %s", tree)
	}
	b.picture("detail")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until(`document.getElementById("panel").hidden && document.activeElement.textContent === "ledger:7"`)
	b.open("#waits")
	b.run(chromedp.Click("summary"))
	b.shows("mailer holds mail:42 and waits for invoice:1001")
	b.picture("waits")
	b.open("#deadlocks")
	b.run(chromedp.Click("#panel button:not(.close)"))
	b.shows("None was found.")
	b.open("#servers")
	b.shows("The servers are ready.")
	b.right()
}

// On a phone the list names the holders, nothing is wider than the screen, and tables stay tables
// for a screen reader.
func TestPhoneHasRoomForAll(t *testing.T) {
	b := newViewer(t)
	populate(b)
	b.run(chromedp.EmulateViewport(390, 760, chromedp.EmulateMobile), emulation.SetEmulatedMedia().WithFeatures(
		[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	for _, hash := range []string{
		"", "#lock=ledger%3A7", "#lock=downloads", "#waits", "#changes", "#servers", "#deadlocks"} {
		b.open(hash)
		if hash == "" {
			b.shows("leader node-a")
			b.shows("blocks 3 for ")
			b.picture("phone")
		}
		if hash == "#waits" {
			b.until(`[...document.querySelectorAll(".tree a")].map(e => e.textContent).join() === "invoice:1001,mail:42,ledger:7"`)
		}
		if strings.HasPrefix(hash, "#lock") {
			b.shows("Break…")
			if n := b.text(`document.querySelectorAll("#panel table[role=table] [role=columnheader]").length`); n == "0" {
				t.Errorf("%s: no table has headers", hash)
			}
		}
		wide := b.text(`[document.documentElement, ...document.querySelectorAll("#panel:not([hidden]) *:not(.graph *, .graph), #filters *")]
			.filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80)).join("; ")`)
		if wide != "" {
			t.Errorf("%q: wider than the screen: %s", hash, wide)
		}
		nameless := b.text(`[...document.querySelectorAll("a, button, input, select")]
			.filter(e => !e.textContent.trim() && !e.labels?.length && !e.ariaLabel).map(e => e.outerHTML).join("; ")`)
		if nameless != "" {
			t.Errorf("%q: without a name: %s", hash, nameless)
		}
	}
	b.right()
}

// A change is shown within a second of the next look, and its kind is told.
func TestLiveChange(t *testing.T) {
	b := newViewer(t)
	worker := b.client("worker")
	b.open("")
	var worst time.Duration
	for i := range 5 {
		name := fmt.Sprintf("live:%d", i)
		lease := b.lock(worker, name)
		shown := b.shows(name)
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		gone := b.until(fmt.Sprintf("!document.body.innerText.includes(%q)", name))
		worst = max(worst, shown, gone)
	}
	t.Logf("5 changes: shown after %v at most", worst.Round(10*time.Millisecond))
	if worst > 1500*time.Millisecond {
		t.Errorf("a change was shown after %v", worst)
	}
	b.goTo("changes")
	b.shows("live:0\ttaken\tby worker")
	b.shows("live:0\tfreed\twas held by worker")
	b.shows("shorter holds are not seen")
	b.run(chromedp.Click(`//button[contains(., "freed")]`)) // a count filters
	b.until(`document.querySelector("#panel select").value === "freed" && !document.querySelector(".log .on")`)
	b.right()
}

func TestBreakWithTypedName(t *testing.T) {
	b := newViewer(t)
	lease := b.lock(b.client("stuck"), "order:1")
	b.open("#lock=order%3A1")
	b.shows("Break…")
	b.run(chromedp.Click("#panel .danger"), chromedp.SendKeys("#typed", "order:"))
	if b.text(`document.querySelector("dialog [type=submit]").disabled`) != "true" {
		t.Error("a part of the name is enough")
	}
	b.picture("break")
	b.run(chromedp.SendKeys("#typed", "1"+kb.Enter))
	<-leased.Context(lease).Done()
	var lost *holdfast.LostError
	if !errors.As(context.Cause(leased.Context(lease)), &lost) || lost.By != "operator" {
		t.Errorf("the lease ended with %v", context.Cause(leased.Context(lease)))
	}
	b.until(`!document.getElementById("asking").open`)
	b.right()

	b.allow = false
	b.lock(b.client("other"), "order:2")
	b.open("#lock=order%3A2")
	b.shows("Holds (1)")
	if b.text(`document.body.innerText.includes("Break")`) != "false" {
		t.Error("a page that may not break offers it")
	}
	held := b.lock(b.client("other"), "it's held")
	b.open("#lock=it%27s%20held")
	b.shows(fmt.Sprintf(`holdfast break 'it'\''s held' --token %d`, held.Token()))
}

// Filters and the order are in the URL, and a page that is opened with it has them.
func TestFiltersAreInURL(t *testing.T) {
	b := newViewer(t)
	populate(b)
	b.open("")
	b.shows("scheduler")
	b.run(chromedp.SendKeys("#search", "mail"), chromedp.Evaluate(
		`document.getElementById("contended").click(); document.querySelector("[data-sort=name]").click()`, nil))
	b.until(`location.search === "?search=mail&contended=1&sort=name"`)
	b.goTo("lock=mail%3A42")
	b.shows("Holds (1)")
	link := strings.TrimPrefix(b.text("location.href"), b.url)
	b.open("")
	b.open(link)
	b.shows("Holds (1)")
	b.until(rows + " === 1")
	if got := b.names(); got != "mail:42" {
		t.Errorf("%s has %s", link, got)
	}
	b.open("?sort=constructor&kind=x&older=y")
	b.until(rows + " === 9")
	b.right()
}

// What is late comes first, and explained, then the longest wait. One line says how it is.
func TestTroubleComesFirst(t *testing.T) {
	b := newViewer(t)
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	b.open("")
	for _, name := range []string{"z", "m", "a"} {
		b.lock(b.client("holder"), name)
		waiter := b.client("waiter")
		waiting.Go(func() { _, _ = waiter.Mutex(name).Lock(ctx) })
		b.until(fmt.Sprintf(`document.querySelectorAll("tr.row .longest b:not(:empty)").length === %d`,
			map[string]int{"z": 1, "m": 2, "a": 3}[name]))
	}
	short := []holdfast.Option{holdfast.WithTTL(16 * time.Second), holdfast.WithMaxHold(16 * time.Second)}
	if _, err := b.client("holder").Mutex("q", short...).Lock(ctx); err != nil {
		t.Fatal(err)
	}
	b.shows("4 names, 3 contended, longest wait")
	b.until(rows + " === 4")
	if got := b.names(); got != "z m a q" {
		t.Errorf("the order is %s", got)
	}
	b.shows("4 names, 3 contended, 1 late, longest wait") // its max hold is nearly over
	if got := b.names(); got != "q z m a" {
		t.Errorf("the order with one that is late is %s", got)
	}
	b.goTo("lock=q")
	b.shows("Late for")
	b.run(chromedp.Click("#sum span > a"))
	b.until(`location.hash === "#lock=z"`)
	b.right()
}

// A waiter is evicted by its button, after the name was typed.
func TestEvictWithTypedName(t *testing.T) {
	b := newViewer(t)
	b.lock(b.client("holder"), "order:1")
	waiter, ended := b.client("waiter"), make(chan error, 1)
	go func() {
		_, err := waiter.Mutex("order:1").Lock(b.Context())
		ended <- err
	}()
	b.open("#lock=order%3A1")
	b.shows("Evict…")
	b.run(chromedp.Click("#panel td[data-title=Evict] button"), chromedp.SendKeys("#typed", "order:"))
	if b.text(`document.querySelector("dialog [type=submit]").disabled`) != "true" {
		t.Error("a part of the name is enough")
	}
	b.run(chromedp.SendKeys("#typed", "1"+kb.Enter))
	var evicted *holdfast.WaitError
	if err := <-ended; !errors.As(err, &evicted) || evicted.Reason != holdfast.WaitEvicted || evicted.By != "operator" {
		t.Errorf("the wait ended with %v", err)
	}
	b.until(`!document.getElementById("asking").open`)
	b.shows("Nobody waits.")
	b.right()
}

// The picture of waits has names and labels as text, leads to each name, and shows a cycle as one.
func TestWaitGraphShowsMarkupAndCycle(t *testing.T) {
	b := newViewer(t)
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	one, other := b.client("one"), b.client("other")
	b.lock(one, evilText)
	b.lock(other, "order:2")
	waiting.Go(func() { _, _ = one.Mutex("order:2").Lock(ctx) })
	waiting.Go(func() { _, _ = other.Mutex(evilText).Lock(ctx) })
	b.open("#waits")
	b.until(`document.querySelectorAll(".graph a.maybe").length === 2`)
	b.shows("A possible deadlock: callers of the same processes or owners wait for each other")
	b.run(chromedp.Click("summary"))
	b.shows("other holds order:2 and perhaps waits for " + evilText)
	if got := b.text(`document.querySelectorAll(".graph .edge.cycle.perhaps").length`); got != "2" {
		t.Errorf("%s edges are of a cycle", got)
	}
	if b.text(`document.querySelectorAll("main img, main script").length`) != "0" {
		t.Error("a name made elements")
	}
	b.run(chromedp.Focus(`.graph a`), chromedp.KeyEvent(kb.Enter))
	b.until(`location.hash.startsWith("#lock=")`)
	b.shows("A possible deadlock: callers of the same processes or owners wait for each other.")
	b.right()
}

// Which line of code holds a name is shown when it is asked for, and why it is not known.
func TestDetailAsksForTheStack(t *testing.T) {
	b := newViewer(t)
	b.lock(b.client("silent"), "quiet")
	holder := harness.Locker(t, b.server.Addr(), &holdfast.Config{Label: "<i>web", Remote: true})
	b.lock(holder, "job")
	for name, text := range map[string]string{"job": "viewer_test.go:", "quiet": "no process answered in time"} {
		b.open("#lock=" + name)
		b.shows("Which line of code holds it?")
		b.run(chromedp.Click(`//button[contains(., "Which line")]`))
		b.shows(text)
	}
	b.right()
}

// The page tells why a waiter waits: what it wants, and what remains of a hold that ended.
func TestDetailSaysWhy(t *testing.T) {
	b := newViewer(t)
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	holder, waiter := b.client("holder"), b.client("waiter")
	if _, err := holder.Semaphore("gpu", 8).Acquire(ctx, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.RWMutex("catalogue").RLock(ctx); err != nil {
		t.Fatal(err)
	}
	waiting.Go(func() { _, _ = waiter.Semaphore("gpu", 8).Acquire(ctx, 6) })
	waiting.Go(func() { _, _ = waiter.RWMutex("catalogue").Lock(ctx) })
	b.open("#lock=gpu")
	b.shows("holder (4 permits)")
	b.shows("waiter (6 permits)")
	b.open("#lock=catalogue")
	b.shows("holder (reads)")
	b.shows("waiter (writes)")
	if err := holder.Mutex("nightly", holdfast.WithMinHold(time.Minute), holdfast.WithTTL(time.Minute)).Do(ctx,
		func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	b.open("#lock=nightly")
	b.shows("Its min hold blocks others for the time left.")
	b.right()
}

// A page of another origin of the same browser cannot break.
func TestCrossSiteRequestIsRefused(t *testing.T) {
	b := newViewer(t)
	lease := b.lock(b.client("worker"), "order:1")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<script>
			const body = JSON.stringify({name: "order:1", token: %d, typed: "order:1"});
			Promise.allSettled([
				fetch("%[2]sbreak", {method: "POST", mode: "no-cors", body}),
				fetch("%[2]sbreak", {method: "POST", headers: {"Content-Type": "application/json", "X-Holdfast-Secret": "x"}, body}),
				fetch("%[2]sevents").then(r => r.text()),
				new Promise(done => { const s = new EventSource("%[2]sevents"); s.onerror = done; s.onmessage = () => { window.read = true; done(); }; }),
			]).then(all => { document.title = "done " + all.map(a => a.value?.type ?? a.status); });
		</script>`, lease.Token(), b.url)
	}))
	t.Cleanup(func() { evil.CloseClientConnections(); evil.Close() })
	b.run(chromedp.Navigate(evil.URL))
	b.until(`document.title.startsWith("done")`)
	if err := lease.Check(t.Context()); err != nil {
		t.Errorf("another site broke the hold: %v", err)
	}
	if title := b.text("document.title"); !strings.HasPrefix(title, "done rejected,rejected,rejected,") {
		t.Errorf("another site got answers: %s", title)
	}
	if b.text("window.read") != "undefined" {
		t.Error("another site read the stream")
	}
}

const evilText = `<img src=x onerror="alert(1)"><script>alert(2)</script>`

func TestMarkupIsShownAsText(t *testing.T) {
	b := newViewer(t)
	evil := b.client(evilText + "\u202egpj")
	b.lock(evil, evilText)
	b.lock(evil, "a\u202etxt.exe\u0007\u200b")
	b.open("")
	b.shows(evilText)
	b.shows(`a\u{202e}txt.exe\u{7}\u{200b}`)
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("tr.row button")].find(e => e.textContent.includes("onerror")).click()`, nil))
	b.shows("Holds (1)")
	b.picture("markup")
	if b.text(`document.querySelectorAll("main img, main script").length`) != "0" {
		t.Error("a name made elements")
	}
	b.right()
}

func TestTenThousandNames(t *testing.T) {
	b := newViewer(t)
	lockMany(t, b.client("worker"), 10_000, holdfast.WithTTL(4*time.Minute))
	begin := time.Now()
	b.open("")
	b.until(`document.getElementById("count").textContent.startsWith("10,000 of 10,000")`)
	opened := time.Since(begin)
	if n := b.text(rows); len(n) > 2 {
		t.Errorf("%s rows are elements", n)
	}
	var took float64
	b.run(chromedp.Evaluate(`(() => { const s = document.getElementById("search"), at = performance.now(); s.value = "item:0999";
		s.dispatchEvent(new Event("input", {bubbles: true})); return performance.now() - at; })()`, &took))
	b.until(rows + " === 10")
	b.run(chromedp.Evaluate(`(() => { const s = document.getElementById("search"); s.value = ""; s.dispatchEvent(new Event("input", {bubbles: true})); })()`, nil))
	b.run(chromedp.Focus("#scroll"), chromedp.KeyEvent(kb.End))
	b.until(`document.activeElement.textContent === "item:09999"`)
	b.picture("many")
	t.Logf("10,000 names: shown %v after the page was opened; a search took %.0f ms; %s",
		opened.Round(10*time.Millisecond), took, b.text(`document.getElementById("live").textContent`))
	if took > 500 {
		t.Errorf("a search took %.0f ms", took)
	}
	b.right()
}

func TestServerAwayAndBack(t *testing.T) {
	b := newViewer(t)
	b.lock(b.client("worker"), "order:1")
	b.open("")
	b.shows("order:1")
	b.server.Stop()
	away := b.shows("The server does not answer")
	b.picture("away")
	if !strings.Contains(b.names(), "order:1") {
		t.Error("what was last seen is gone")
	}
	b.server.Continue()
	back := b.until(`document.getElementById("away").hidden`)
	t.Logf("shown away after %v, and back after %v", away.Round(10*time.Millisecond), back.Round(10*time.Millisecond))
	b.right()
}

// Ten pages cost the server as much as one. The two runs count the commands of 10 s.
func TestTenViewersCostAsOne(t *testing.T) {
	b := newViewer(t)
	worker := b.client("worker")
	for i := range 20 {
		b.lock(worker, fmt.Sprintf("order:%d", i))
	}
	commands := func() int {
		if _, err := b.server.Do("CONFIG", "RESETSTAT"); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		n := 0
		for _, calls := range b.server.CommandStats() {
			n += calls
		}
		return n
	}
	idle := commands()
	b.open("")
	one := commands() - idle
	for range 9 {
		tab := b.tab(b.browser)
		if err := chromedp.Run(tab, chromedp.Navigate(b.url)); err != nil {
			t.Fatal(err)
		}
	}
	b.shows("order:9")
	ten := commands() - idle
	t.Logf("commands in 10 s beside %d without a page: %d of one page, %d of ten", idle, one, ten)
	if ten > one*5/4 {
		t.Errorf("ten pages cost %d commands, and one %d", ten, one)
	}
}

// Who held a name before the page was opened is known of a history, and a label is no markup there.
func TestHistoryBeforePage(t *testing.T) {
	b := newViewer(t)
	keeping := func(label string) *holdfast.Client {
		return harness.Locker(b.T, b.server.Addr(), &holdfast.Config{Label: label, History: 100})
	}
	for _, label := range []string{"first <b>holder</b>", "second"} {
		client := keeping(label)
		if err := b.lock(client, "job").Release(); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil { // which writes it
			t.Error(err)
		}
	}
	b.open("#lock=job")
	b.shows("first <b>holder</b>")
	b.shows("Nobody holds this name")
	third := b.lock(keeping("third"), "job")
	b.until(`document.querySelectorAll(".times li").length === 3 && document.querySelectorAll(".times i.open").length === 1`)
	if err := third.Release(); err != nil {
		t.Error(err)
	}
	b.until(`document.querySelectorAll(".times li").length === 3 && document.querySelectorAll(".times i.open").length === 0`)
	harness.Must(t, b.server, "SET", "holdfast:{%history:}", "mine")
	b.open("#lock=other")
	b.shows("The history cannot be read")
}
